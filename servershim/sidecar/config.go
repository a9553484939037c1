package sidecar

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
)

// Config configures a Sidecar. The zero value works: etcd at 127.0.0.1:2379, ourselves at
// localhost:2378, both in plain text. The comments give the command's flags, which errors name.
type Config struct {
	// EtcdEndpoint (--etcd-endpoint) is the client URL of the one member beside us: http, https,
	// unix or unixs. Without a scheme it is https if one of the files below is given, else http.
	EtcdEndpoint string
	// CACert (--cacert), Cert (--cert) and Key (--key) are files for TLS towards etcd, as in
	// etcdctl. Default roots: the system's.
	CACert, Cert, Key string
	// User and Password (--user, --password) are of etcd's own authentication. They are never
	// needed for proofs; with them the member also tells its leader, indexes and alarms.
	User, Password string

	// Listen (--listen) is host:port, default localhost:2378.
	Listen string
	// Listener is used instead of Listen if it is not nil, and is closed by Run.
	Listener net.Listener
	// CertFile (--cert-file) and KeyFile (--key-file) make us serve TLS, as in etcd. Both or none.
	CertFile, KeyFile string
	// TrustedCAFile (--trusted-ca-file) makes clients show a certificate of these roots, as in
	// etcd, with or without ClientCertAuth (--client-cert-auth), which alone lacks the roots.
	TrustedCAFile  string
	ClientCertAuth bool
	// MetricsListen (--metrics-listen) is host:port for /metrics over HTTP: those of
	// servershim.Config.Registerer, of the process, and of the Go runtime. Default: none.
	MetricsListen string

	// Interval (--proof-interval), WindowFloor (--window) and ElectionTimeout (--election-timeout)
	// are as in servershim.Config, with the same defaults and ranges.
	Interval, WindowFloor, ElectionTimeout time.Duration
	// DrainTime (--drain-time) is how long we still answer once ctx has ended. Default 5 s, at most
	// 10 min. Shorter cuts off clients that have not yet left, longer delays the stop.
	DrainTime time.Duration

	// Logger gets changes only. Default: slog.Default().
	Logger *slog.Logger
	// DialOptions are added to those of the connection to etcd, for tunnels and tests.
	DialOptions []grpc.DialOption
}

const (
	defaultEtcdEndpoint = "127.0.0.1:2379"
	defaultListen       = "localhost:2378"
	defaultDrainTime    = 5 * time.Second
	maxDrainTime        = 10 * time.Minute
)

func (c Config) withDefaults() Config {
	if c.EtcdEndpoint == "" {
		c.EtcdEndpoint = defaultEtcdEndpoint
	}
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if c.DrainTime == 0 {
		c.DrainTime = defaultDrainTime
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// flagError names a flag, its value and the way out.
func flagError(flag string, value any, problem string) error {
	return fmt.Errorf("--%s %v: %s", flag, value, problem)
}

// validate checks what needs no file, no socket and no peer.
func (c Config) validate() error {
	switch {
	case c.KeyFile != "" && c.CertFile == "":
		return flagError("key-file", c.KeyFile, "a key without its certificate: give --cert-file too")
	case c.CertFile != "" && c.KeyFile == "":
		return flagError("cert-file", c.CertFile, "a certificate without its key: give --key-file too")
	case c.TrustedCAFile != "" && c.CertFile == "":
		return flagError("trusted-ca-file", c.TrustedCAFile, "client certificates need TLS: give --cert-file and --key-file too")
	case c.ClientCertAuth && c.TrustedCAFile == "":
		return flagError("client-cert-auth", c.ClientCertAuth, "nothing to check client certificates against: give --trusted-ca-file too")
	case c.Key != "" && c.Cert == "":
		return flagError("key", c.Key, "a key without its certificate: give --cert too")
	case c.Cert != "" && c.Key == "":
		return flagError("cert", c.Cert, "a certificate without its key: give --key too")
	case c.Password != "" && c.User == "":
		return flagError("password", "(not shown)", "a password without a user: give --user too")
	}
	return c.validateTimes()
}

func (c Config) validateTimes() error {
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"proof-interval", c.Interval}, {"window", c.WindowFloor}, {"election-timeout", c.ElectionTimeout}, {"drain-time", c.DrainTime}} {
		if d.value < 0 {
			return flagError(d.flag, d.value, "a time cannot be negative: leave the flag out for the default")
		}
	}
	switch {
	case c.Interval != 0 && c.WindowFloor != 0 && c.WindowFloor < 2*c.Interval:
		return flagError("window", c.WindowFloor, fmt.Sprintf("every hiccup would look like a lost quorum: give at least twice --proof-interval, %v, or shorten that", 2*c.Interval))
	case c.DrainTime > maxDrainTime:
		return flagError("drain-time", c.DrainTime, fmt.Sprintf("nobody waits that long for a stop: give at most %v", maxDrainTime))
	}
	return nil
}

// interval is what the shim makes of Interval: a heartbeat, a tenth of the election timeout.
func (c Config) interval() time.Duration {
	if c.Interval != 0 {
		return c.Interval
	}
	return c.ElectionTimeout / 10 // under 100 ms it makes no difference to how long reports are valid
}
