package prober

import (
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// dialer makes the connections of one probe. They are the probe's own: large answers
// to a user's calls on a shared one would hold back the checks.
type dialer struct {
	serverName string
	options    []grpc.DialOption
}

func newDialer(cfg Config, serverName string, t times) dialer {
	creds := cfg.Credentials
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: t.first,
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(), // a resolver's balancing, retrying or health checking is not ours
		grpc.WithDisableHealthCheck(),
	}
	if serverName != "" {
		options = append(options, grpc.WithAuthority(serverName))
	}
	return dialer{serverName, append(options, cfg.DialOptions...)}
}

// dial returns a connection to one address, which connects when it is first used.
func (d dialer) dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(target(address), d.options...)
}

// target names an address so that gRPC neither looks it up nor balances: one connection
// leads to one member.
func target(address string) string {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:") || strings.HasPrefix(address, "passthrough:") {
		return address
	}
	return "passthrough:///" + address
}
