package sidecar

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
)

// listen opens the address of that flag.
func listen(flag, address string) (net.Listener, error) {
	if strings.Contains(address, "://") {
		return nil, flagError(flag, address, "a URL: want host:port, TLS comes from the files")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, flagError(flag, address, fmt.Sprintf("%v: want host:port, for example 0.0.0.0:2378", err))
	}
	lis, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return lis, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, flagError(flag, address, "address in use: stop what listens there (another shim?) or give another port")
	case errors.Is(err, fs.ErrPermission):
		return nil, flagError(flag, address, "not permitted: give a port above 1023, or this process the right")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, flagError(flag, address, "no address of this host: give one of its own, or 0.0.0.0 for all")
	default:
		return nil, flagError(flag, address, fmt.Sprintf("cannot listen: %v: give another address", err))
	}
}
