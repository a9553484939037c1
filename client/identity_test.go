package client

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Clients of tunnels to several clusters may have lists that share their memory.
func TestProbesAreSharedByEqualOptionsOnly(t *testing.T) {
	type own struct{ grpc.EmptyDialOption }
	a, b := grpc.WithUserAgent("a"), grpc.WithUserAgent("b")
	base := make([]grpc.DialOption, 0, 4)
	key := func(options ...grpc.DialOption) shareKey {
		return shareKeyOf(&clientv3.Config{DialOptions: options}, Health{}, false)
	}
	one := shareKeyOf(&clientv3.Config{DialOptions: append(base, a)}, Health{}, false)
	other := shareKeyOf(&clientv3.Config{DialOptions: append(base, b)}, Health{}, false)
	for _, c := range []struct {
		name string
		a, b shareKey
		want bool
	}{
		{"the same options in lists of their own", key(a, b), key(a, b), true},
		{"none", key(), key(), true},
		{"other options in the same memory", one, other, false},
		{"another order", key(a, b), key(b, a), false},
		{"one more", key(a), key(a, b), false},
		{"options of a user's own, whose content nobody can compare", key(own{}), key(own{}), false},
	} {
		if got := c.a == c.b; got != c.want {
			t.Errorf("%s: shared: %v, want %v", c.name, got, c.want)
		}
	}
}
