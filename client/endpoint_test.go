package client

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestEndpointBecomesTheAddressThatGRPCDials(t *testing.T) {
	for _, tt := range []struct {
		in      string
		tls     bool
		address string
		secure  bool
		shim    string
	}{
		{"127.0.0.1:2379", false, "127.0.0.1:2379", false, "127.0.0.1:2378"},
		{"127.0.0.1:2379", true, "127.0.0.1:2379", true, "127.0.0.1:2378"},
		{"http://etcd-1.example:2379", true, "etcd-1.example:2379", false, "etcd-1.example:2378"},
		{"https://etcd-1.example:2379/", false, "etcd-1.example:2379", true, "etcd-1.example:2378"},
		{"https://[2001:db8::1]:2379", false, "[2001:db8::1]:2379", true, "[2001:db8::1]:2378"},
		{"unix:///var/run/etcd.sock", false, "unix:///var/run/etcd.sock", false, ""},
		{"unix:etcd.sock", false, "unix:etcd.sock", false, ""},
		{"unix://etcd.sock", false, "unix:etcd.sock", false, ""},
		{"unixs:etcd.sock", false, "unix:etcd.sock", true, ""},
	} {
		got, err := parseEndpoint(tt.in, tt.tls)
		if err != nil {
			t.Errorf("parseEndpoint(%q) fails: %v", tt.in, err)
			continue
		}
		if got.address != tt.address || got.secure != tt.secure {
			t.Errorf("parseEndpoint(%q, tls %v) = %q secure %v, want %q secure %v", tt.in, tt.tls, got.address, got.secure, tt.address, tt.secure)
		}
		if shim := defaultShimAddress(got.address); shim != tt.shim {
			t.Errorf("shim of %q = %q, want %q", tt.in, shim, tt.shim)
		}
	}
}

func TestBadEndpointsAreRefusedWithFieldValueAndWayOut(t *testing.T) {
	for _, tt := range []struct {
		name  string
		eps   []string
		tls   bool
		field string
		says  string
	}{
		{"none", nil, false, "Endpoints", "localhost:2379"},
		{"no port", []string{"a:1", "localhost"}, false, "Endpoints[1]", "missing port"},
		{"empty", []string{""}, false, "Endpoints[0]", "want host:port"},
		{"no host", []string{":2379"}, false, "Endpoints[0]", "want host:port"},
		{"other scheme", []string{"ftp://a:1"}, false, "Endpoints[0]", `"ftp"`},
		{"not a URL", []string{"http://a b:1"}, false, "Endpoints[0]", "not a URL"},
		{"path", []string{"http://a:1/v3"}, false, "Endpoints[0]", "path"},
		{"unix without path", []string{"unix:"}, false, "Endpoints[0]", "path"},
		{"mixed schemes", []string{"https://a:1", "http://b:1"}, false, "Endpoints[1]", "https for all or http for all"},
		{"mixed with a bare one", []string{"a:1", "http://b:1"}, true, "Endpoints[1]", "https for all or http for all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseEndpoints(tt.eps, tt.tls)
			var bad *ConfigError
			if !errors.As(err, &bad) {
				t.Fatalf("error = %v, want a ConfigError", err)
			}
			if bad.Field != tt.field || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error = %q (field %q), want field %q and %q in it", err, bad.Field, tt.field, tt.says)
			}
		})
	}
	if _, err := parseEndpoints(nil, false); !errors.Is(err, clientv3.ErrNoAvailableEndpoints) {
		t.Errorf("no endpoints: error = %v, want clientv3.ErrNoAvailableEndpoints in it, as the official client gives", err)
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"a:1", "http://a:1", "unix:///x", "https://[::1]:2", "unixs:", "://", "http://%zz:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ep, err := parseEndpoint(s, false)
		if err == nil && ep.address == "" {
			t.Errorf("parseEndpoint(%q) gives an empty address and no error", s)
		}
		defaultShimAddress(ep.address)
	})
}
