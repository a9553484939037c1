package client

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// shimPort is where the sidecar listens by default, beside etcd's 2379.
const shimPort = "2378"

// ConfigError is a configuration that New or Attach refuses.
type ConfigError struct {
	Field string // as in the configuration, for example "Endpoints[1]"
	Value string // as it was given, for people
	Want  string // what is allowed, and the way out
	// Err is clientv3.ErrNoAvailableEndpoints where Endpoints is empty, the
	// registerer's error where Health.Registerer refuses the metrics, else nil.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("quorumwise: %s = %s: %s", e.Field, e.Value, e.Want)
}

// Unwrap returns the condition.
func (e *ConfigError) Unwrap() error { return e.Err }

// endpoint is one configured endpoint as gRPC will see it.
type endpoint struct {
	address    string // what the resolver of clientv3 hands to gRPC
	serverName string // for the certificate: each endpoint's own
	secure     bool
}

// parseEndpoints checks all endpoints; they share one connection's
// credentials, so they must agree on being secure or not.
func parseEndpoints(eps []string, haveTLS bool) ([]endpoint, error) {
	if len(eps) == 0 {
		return nil, &ConfigError{
			Field: "Endpoints", Value: "[]", Want: "give at least one endpoint, such as localhost:2379",
			Err: clientv3.ErrNoAvailableEndpoints,
		}
	}
	parsed := make([]endpoint, 0, len(eps))
	for i, s := range eps {
		ep, err := parseEndpoint(s, haveTLS)
		if err != nil {
			return nil, &ConfigError{Field: fmt.Sprintf("Endpoints[%d]", i), Value: fmt.Sprintf("%q", s), Want: err.Error()}
		}
		if i > 0 && ep.secure != parsed[0].secure {
			return nil, &ConfigError{
				Field: fmt.Sprintf("Endpoints[%d]", i), Value: fmt.Sprintf("%q", s),
				Want: fmt.Sprintf("all endpoints share one set of credentials: use https for all or http for all (the first is %q)", eps[0]),
			}
		}
		parsed = append(parsed, ep)
	}
	return parsed, nil
}

// parseEndpoint reads the forms that clientv3 takes: host:port, http(s)://host:port,
// unix(s):path, unix(s)://path.
func parseEndpoint(s string, haveTLS bool) (endpoint, error) {
	const want = "want host:port, http://host:port, https://host:port or unix:path"
	if rest, ok := cutUnix(s); ok {
		if rest == "" {
			return endpoint{}, fmt.Errorf("a unix endpoint needs a path; %s", want)
		}
		addr := "unix:" + rest
		if strings.HasPrefix(rest, "/") && strings.Contains(s, "://") {
			addr = "unix://" + rest
		}
		return endpoint{address: addr, serverName: path.Base(rest), secure: strings.HasPrefix(s, "unixs:") || haveTLS}, nil
	}
	host, secure := s, haveTLS
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		u, err := url.Parse(s)
		if err != nil {
			return endpoint{}, fmt.Errorf("not a URL (%v); %s", err, want)
		}
		switch scheme {
		case "http":
			secure = false
		case "https":
			secure = true
		default:
			return endpoint{}, fmt.Errorf("scheme %q is not one of etcd's; %s", scheme, want)
		}
		if u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" {
			return endpoint{}, fmt.Errorf("an endpoint has no user, path or query; %s", want)
		}
		host = u.Host
	}
	if name, port, err := net.SplitHostPort(host); err != nil {
		return endpoint{}, fmt.Errorf("%v; %s", err, want)
	} else if name == "" || port == "" || strings.ContainsAny(name, " \t\n/") {
		return endpoint{}, fmt.Errorf("host %q, port %q; %s", name, port, want)
	}
	return endpoint{address: host, serverName: host, secure: secure}, nil
}

func cutUnix(s string) (string, bool) {
	for _, p := range []string{"unix:", "unixs:"} {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return strings.TrimPrefix(rest, "//"), true
		}
	}
	return "", false
}

// defaultShimAddress is the same host at port 2378, or none for a unix socket.
func defaultShimAddress(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || strings.HasPrefix(address, "unix:") {
		return ""
	}
	return net.JoinHostPort(host, shimPort)
}
