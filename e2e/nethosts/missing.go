//go:build linux

package nethosts

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
)

// MissingError says what this machine lacks for a lab.
type MissingError struct {
	What []string // each with the way to get it
}

func (e *MissingError) Error() string {
	return "nethosts: this machine cannot have a lab; missing: " + strings.Join(e.What, "; ")
}

// Missing says what this machine lacks for a lab, nil if nothing. It tries it
// once, in namespaces that are thrown away.
func Missing() *MissingError {
	switch part := os.Getenv(partEnv); {
	case part == partInit || part == partProbe:
		_ = Enter() // plays the part and does not return
	case part != "":
		return nil // where it runs there is a lab
	}
	return tryOnce()
}

var tryOnce = sync.OnceValue(func() *MissingError {
	if inside != nil {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o, err := startInit(partProbe, nil)
	if err == nil {
		o.wait()
		return nil
	}
	if missing, ok := errors.AsType[*MissingError](err); ok {
		return missing
	}
	return &MissingError{What: []string{err.Error()}}
})

// missingPrograms looks for the commands that a lab runs.
func missingPrograms() (missing []string) {
	for _, p := range []struct{ name, from string }{{"ip", "iproute2"}, {"nft", "nftables"}} {
		if _, err := findTool(p.name); err != nil {
			missing = append(missing, fmt.Sprintf("the command %s: install the package %s (apt-get install %[2]s, dnf install %[2]s, apk add %[2]s)", p.name, p.from))
		}
	}
	return missing
}

func missingRoot(err error) string {
	return fmt.Sprintf("permission to make namespaces (%v): run as root (sudo -E), in a container with --privileged, "+
		"or allow user namespaces (sysctl user.max_user_namespaces=10000; on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0; on Debian kernel.unprivileged_userns_clone=1)", err)
}
