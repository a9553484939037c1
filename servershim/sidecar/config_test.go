package sidecar

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// noLookup keeps a name from being looked up: the dialer of the test knows where it is.
var noLookup = func() grpc.DialOption {
	r := manual.NewBuilderWithScheme("dns")
	r.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: serverName + ":2379", ServerName: serverName}}})
	return grpc.WithResolvers(r)
}()

func TestParseEndpoint(t *testing.T) {
	tests := []struct {
		value  string
		secure bool
		want   Endpoint
	}{
		{"http://127.0.0.1:2379", false, Endpoint{"127.0.0.1:2379", false}},
		{"https://a.example:2379/", false, Endpoint{"a.example:2379", true}},
		{"a:2379", false, Endpoint{"a:2379", false}},
		{"a:2379", true, Endpoint{"a:2379", true}},
		{"http://a:2379", true, Endpoint{"a:2379", false}},
		{"http://[::1]:2379", false, Endpoint{"[::1]:2379", false}},
		{"[::1]:2379", false, Endpoint{"[::1]:2379", false}},
		{"unix:///run/etcd.sock", false, Endpoint{"unix:/run/etcd.sock", false}},
		{"unixs:///run/etcd.sock", false, Endpoint{"unix:/run/etcd.sock", true}},
	}
	for _, tt := range tests {
		got, err := ParseEndpoint("etcd-endpoint", tt.value, tt.secure)
		if err != nil || got != tt.want {
			t.Errorf("ParseEndpoint(%q, %v) = %v, %v; want %v", tt.value, tt.secure, got, err, tt.want)
		}
	}
}

func TestParseEndpointRefusesWhatCannotBeDialled(t *testing.T) {
	for value, hint := range map[string]string{
		"":                            "want host:port",
		"a":                           "want host:port",
		"a:":                          "want 1 to 65535",
		":2379":                       "no host",
		"a:0":                         "want 1 to 65535",
		"a:65536":                     "want 1 to 65535",
		"a:x":                         "http://127.0.0.1:2379",
		"::1:2379":                    "want",
		"http://":                     "want host:port",
		"http://a":                    "want host:port",
		"ftp://a:2379":                `unknown scheme "ftp"`,
		"http://a:2379/v3":            "more than an address",
		"http://root:secret@a:2379":   "--user",
		"http://a:2379?x=1":           "more than an address",
		"http://a b:2379":             "not a URL",
		"unix://":                     "no path",
		"http://a:2379,https://b:379": "not a URL",
	} {
		_, err := ParseEndpoint("etcd-endpoint", value, false)
		if err == nil || !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), "--etcd-endpoint") {
			t.Errorf("ParseEndpoint(%q) = %v, want an error with the flag and %q", value, err, hint)
		}
	}
}

func TestErrorsOfEndpointsShowNoPassword(t *testing.T) {
	for _, value := range []string{
		"http://root:secret@a:2379", "root:secret@a:2379", "https://root:sec@ret@a", "http://root:secret@a b:2379",
		"ftp://root:secret@a:2379", "http://root:secret@a:2379,http://root:secret@b:2379",
	} {
		_, err := Config{EtcdEndpoint: value}.etcd()
		if err == nil || strings.Contains(err.Error(), "sec") || !strings.Contains(err.Error(), "(not shown)@") {
			t.Errorf("etcd endpoint %q: got %v, want an error that shows the address and not the password: it ends in logs", value, err)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	f.Add("http://127.0.0.1:2379")
	f.Add("unix:///x")
	f.Add("https://[::1]:1")
	f.Fuzz(func(t *testing.T, value string) {
		got, err := ParseEndpoint("endpoints", value, false)
		if err == nil && !strings.HasPrefix(got.Target, "unix:") {
			if _, _, err := net.SplitHostPort(got.Target); err != nil {
				t.Errorf("ParseEndpoint(%q) = %v, which cannot be dialled: %v", value, got, err)
			}
		}
	})
}

func TestNewRefusesSenselessConfigs(t *testing.T) {
	dir := t.TempDir()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	cert, key := ca.issue(t)
	_, otherKey := other.issue(t)
	certFile, keyFile := write(t, filepath.Join(dir, "cert"), cert), write(t, filepath.Join(dir, "key"), key)
	wrongKey := write(t, filepath.Join(dir, "wrong"), otherKey)
	rubbish := write(t, filepath.Join(dir, "rubbish"), []byte("not PEM"))
	missing := filepath.Join(dir, "missing")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	tests := []struct {
		name string
		cfg  Config
		want []string // in the error
	}{
		{"key without certificate", Config{KeyFile: keyFile}, []string{"--key-file", keyFile, "--cert-file"}},
		{"certificate without key", Config{CertFile: certFile}, []string{"--cert-file", certFile, "--key-file"}},
		{"client certificates without TLS", Config{TrustedCAFile: certFile}, []string{"--trusted-ca-file", certFile, "--cert-file"}},
		{"client-cert-auth without roots", Config{CertFile: certFile, KeyFile: keyFile, ClientCertAuth: true}, []string{"--client-cert-auth", "--trusted-ca-file"}},
		{"client key without certificate", Config{Key: keyFile}, []string{"--key ", keyFile, "--cert"}},
		{"client certificate without key", Config{Cert: certFile}, []string{"--cert ", certFile, "--key"}},
		{"password without user", Config{Password: "secret"}, []string{"--password", "--user"}},
		{"missing certificate", Config{CertFile: missing, KeyFile: keyFile}, []string{"--cert-file", missing, "no such file"}},
		{"missing key", Config{CertFile: certFile, KeyFile: missing}, []string{"--key-file", missing, "no such file"}},
		{"missing roots", Config{CertFile: certFile, KeyFile: keyFile, TrustedCAFile: missing}, []string{"--trusted-ca-file", missing}},
		{"missing roots of etcd", Config{EtcdEndpoint: "https://a:2379", CACert: missing}, []string{"--cacert", missing}},
		{"a directory for a certificate", Config{CertFile: dir, KeyFile: keyFile}, []string{"--cert-file", dir, "cannot be read"}},
		{"key of another certificate", Config{CertFile: certFile, KeyFile: wrongKey}, []string{"--cert-file", certFile, "--key-file", wrongKey}},
		{"client key of another certificate", Config{EtcdEndpoint: "https://a:2379", Cert: certFile, Key: wrongKey}, []string{"--cert ", certFile, "--key " + wrongKey}},
		{"rubbish for roots", Config{CertFile: certFile, KeyFile: keyFile, TrustedCAFile: rubbish}, []string{"--trusted-ca-file", rubbish, "PEM"}},
		{"rubbish for a certificate", Config{CertFile: rubbish, KeyFile: keyFile}, []string{"--cert-file", rubbish}},
		{"malformed endpoint", Config{EtcdEndpoint: "http//a:2379"}, []string{"--etcd-endpoint", "http//a:2379"}},
		{"several endpoints", Config{EtcdEndpoint: "http://a:2379,https://b:2379"}, []string{"--etcd-endpoint", "one member"}},
		{"plain endpoint with roots", Config{EtcdEndpoint: "http://a:2379", CACert: certFile}, []string{"--etcd-endpoint", "https", "--cacert"}},
		{"window below the interval", Config{Interval: 200 * time.Millisecond, WindowFloor: 100 * time.Millisecond}, []string{"--window", "100ms", "--proof-interval"}},
		{"window below the default interval", Config{WindowFloor: 10 * time.Millisecond}, []string{"--window", "10ms"}},
		{"window above the election timeout", Config{WindowFloor: 2 * time.Second}, []string{"--window", "2s", "--election-timeout"}},
		{"negative interval", Config{Interval: -1}, []string{"--proof-interval", "-1ns"}},
		{"negative drain time", Config{DrainTime: -time.Second}, []string{"--drain-time", "-1s"}},
		{"endless drain time", Config{DrainTime: time.Hour}, []string{"--drain-time", "1h0m0s", "10m"}},
		{"election timeout beyond etcd's", Config{ElectionTimeout: time.Hour}, []string{"--election-timeout", "1h0m0s"}},
		{"address in use", Config{Listen: taken.Addr().String()}, []string{"--listen", taken.Addr().String(), "in use"}},
		{"metrics address in use", Config{Listen: "127.0.0.1:0", MetricsListen: taken.Addr().String()}, []string{"--metrics-listen", taken.Addr().String(), "in use"}},
		{"URL to listen on", Config{Listen: "https://127.0.0.1:0"}, []string{"--listen", "host:port"}},
		{"no port to listen on", Config{Listen: "localhost"}, []string{"--listen localhost", "host:port"}},
		{"an address of somebody else", Config{Listen: "192.0.2.1:0"}, []string{"--listen 192.0.2.1:0", "0.0.0.0"}},
		{"an impossible port", Config{Listen: "127.0.0.1:99999"}, []string{"--listen 127.0.0.1:99999", "port"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cfg.Listen == "" {
				tt.cfg.Listen = "127.0.0.1:0"
			}
			_, err := New(tt.cfg)
			if err == nil {
				t.Fatal("New accepted it")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q shows the password", err)
			}
		})
	}
}

func TestNewSaysThatAFileIsNotReadable(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "cert"), nil)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{CertFile: path, KeyFile: path, Listen: "127.0.0.1:0"})
	// Root may read everything, and then finds the file empty.
	if err == nil || !strings.Contains(err.Error(), "--cert-file "+path) {
		t.Errorf("New = %v, want an error that names the flag and the file", err)
	}
}
