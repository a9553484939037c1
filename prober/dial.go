package prober

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// dialer makes the connections of one probe. They are the probe's own: large answers
// to a user's calls on a shared one would hold back the checks.
type dialer struct {
	creds   credentials.TransportCredentials
	options []grpc.DialOption
	// authority is what a member's certificate is checked for, unless the credentials name
	// another one; they may be the user's, among the options.
	authority string
	user      []grpc.DialOption // go last, so that they win
}

func newDialer(cfg Config, serverName string, t times) dialer {
	d := dialer{creds: cfg.Credentials, authority: serverName, user: cfg.DialOptions}
	if d.creds == nil {
		d.creds = insecure.NewCredentials()
	}
	d.options = []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: t.first,
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(), // a resolver's balancing, retrying or health checking is not ours
		grpc.WithDisableHealthCheck(),
	}
	return d
}

// dial returns a connection to one address, which connects when it is first used, and
// what ends it.
func (d dialer) dial(address string) (*grpc.ClientConn, func(), error) {
	w := newWire(d.creds)
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(w)}, d.options...)
	conn, err := grpc.NewClient(target(address), slices.Concat(options, d.named(), d.user)...)
	if err != nil && d.authority != "" {
		// gRPC refuses an authority beside credentials that name another one.
		conn, err = grpc.NewClient(target(address), slices.Concat(options, d.user)...)
	}
	if err != nil {
		return nil, nil, err
	}
	return conn, func() { w.end.cut(); conn.Close() }, nil
}

func (d dialer) named() []grpc.DialOption {
	if d.authority == "" {
		return nil
	}
	return []grpc.DialOption{grpc.WithAuthority(d.authority)}
}

// target names an address so that gRPC neither looks it up nor balances: one connection
// leads to one member.
func target(address string) string {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:") || strings.HasPrefix(address, "passthrough:") {
		return address
	}
	return "passthrough:///" + address
}
