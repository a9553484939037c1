package prober

import (
	"crypto/tls"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// A user may have one name for all members, in the credentials that the client's own
// connections use too, or in options.
func TestProbesDialWhateverNameTheCredentialsBear(t *testing.T) {
	const endpoint, name = "10.0.0.1:2379", "etcd.example"
	for _, c := range []struct {
		what string
		cfg  Config
	}{
		{"no name", Config{Credentials: credentials.NewTLS(&tls.Config{})}},
		{"a name of their own", Config{Credentials: credentials.NewTLS(&tls.Config{ServerName: name})}},
		{"a name of the user's options", Config{DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{ServerName: name}))}}},
		{"an authority of the user's", Config{DialOptions: []grpc.DialOption{grpc.WithAuthority(name)}}},
	} {
		conn, end, err := newDialer(c.cfg, endpoint, scaled(c.cfg)).dial(endpoint)
		if err != nil {
			t.Errorf("%s: %v, want a connection: all members would be unreachable for good", c.what, err)
			continue
		}
		end()
		_ = conn
	}
}
