package sidecar

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is an address as gRPC dials it, and whether TLS is spoken there.
type Endpoint struct {
	Target string // host:port, or unix:path
	TLS    bool
}

// ParseEndpoint reads a client URL of etcd: http, https, unix, unixs, or host:port without a
// scheme, which speaks TLS if secure says so. flag is named in errors.
func ParseEndpoint(flag, value string, secure bool) (Endpoint, error) {
	bad := func(problem string) (Endpoint, error) {
		return Endpoint{}, flagError(flag, strconv.Quote(withoutUser(value)), problem)
	}
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok {
		scheme, rest = "http", value
		if secure {
			scheme = "https"
		}
	}
	switch scheme {
	case "http", "https":
		u, err := url.Parse(scheme + "://" + rest)
		if err != nil {
			return bad("not a URL: want for example http://127.0.0.1:2379")
		}
		if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return bad("more than an address: want for example http://127.0.0.1:2379, a user goes into --user")
		}
		if err := checkHostPort(u.Host); err != nil {
			return bad(err.Error())
		}
		return Endpoint{u.Host, scheme == "https"}, nil
	case "unix", "unixs":
		if rest == "" {
			return bad("no path of a socket: want for example unix:///run/etcd.sock")
		}
		return Endpoint{"unix:" + rest, scheme == "unixs"}, nil
	default:
		return bad("unknown scheme " + strconv.Quote(scheme) + ": want http, https, unix or unixs")
	}
}

// withoutUser hides what stands before the last @, where people put passwords: errors end in logs.
func withoutUser(value string) string {
	at := strings.LastIndex(value, "@")
	if at < 0 {
		return value
	}
	start := 0
	if i := strings.Index(value[:at], "://"); i >= 0 {
		start = i + len("://")
	}
	return value[:start] + "(not shown)" + value[at:]
}

// checkHostPort wants both halves of an address that can be dialled.
func checkHostPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w: want host:port, for example 127.0.0.1:2379", err)
	}
	if host == "" {
		return fmt.Errorf("no host: want host:port, for example 127.0.0.1:%s", port)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q: want 1 to 65535, for example %s", port, net.JoinHostPort(host, "2379"))
	}
	return nil
}

// etcd returns where etcd is. One member only: what a shim says is true of that one.
func (c Config) etcd() (Endpoint, error) {
	const flag = "etcd-endpoint"
	if strings.Contains(c.EtcdEndpoint, ",") {
		return Endpoint{}, flagError(flag, strconv.Quote(withoutUser(c.EtcdEndpoint)), "several endpoints: a shim looks after one member, give that one and run a shim beside each of the others")
	}
	files := c.CACert != "" || c.Cert != ""
	endpoint, err := ParseEndpoint(flag, c.EtcdEndpoint, files)
	if err != nil {
		return Endpoint{}, err
	}
	if files && !endpoint.TLS {
		return Endpoint{}, flagError(flag, strconv.Quote(withoutUser(c.EtcdEndpoint)), "plain text, but --cacert or --cert is given: write https, or leave the files out")
	}
	return endpoint, nil
}
