package command

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/leak"
)

func TestMain(m *testing.M) { leak.VerifyTestMain(m, leak.Product) }

// run runs the command with args and returns what it wrote.
func run(ctx context.Context, args ...string) (stdout string, err error) {
	stdout, _, err = runWithErrors(ctx, args...)
	return stdout, err
}

func runWithErrors(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	err = cmd.ExecuteContext(ctx)
	return out.String(), errs.String(), err
}

func TestCommandRefusesBadInput(t *testing.T) {
	dir := t.TempDir()
	cert := filepath.Join(dir, "cert.pem")
	if err := os.WriteFile(cert, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := []struct {
		args string
		want []string
	}{
		{"serve --etcd-endpoint http//a:2379", []string{"--etcd-endpoint", "http//a:2379", "want"}},
		{"serve --etcd-endpoint http://a:2379,https://b:2379", []string{"--etcd-endpoint", "one member"}},
		{"serve --etcd-endpoint ftp://a:2379", []string{"--etcd-endpoint", "ftp", "want http"}},
		{"serve --window 50ms --proof-interval 100ms", []string{"--window 50ms", "200ms"}},
		{"serve --window soon", []string{"--window", "soon"}},
		{"serve --election-timeout soon", []string{"--election-timeout", "soon", "1000 for milliseconds"}},
		{"serve --election-timeout 0", []string{"--election-timeout", `"0"`, "100ms to 50s"}},
		{"serve --election-timeout 0s", []string{"--election-timeout", `"0s"`, "100ms to 50s"}},
		{"serve --election-timeout=-1000", []string{"--election-timeout", `"-1000"`, "100ms to 50s"}},
		{"serve --election-timeout 99 --listen 127.0.0.1:0", []string{"--election-timeout 99ms", "100ms to 50s"}},
		{"serve --key-file " + cert, []string{"--key-file " + cert, "--cert-file"}},
		{"serve --cert-file /nowhere --key-file " + cert, []string{"--cert-file /nowhere", "check the path"}},
		{"serve --cert-file " + cert + " --key-file " + cert, []string{"--cert-file " + cert, "--key-file"}},
		{"serve --cert-file " + cert + " --key-file " + cert + " --client-cert-auth", []string{"--client-cert-auth", "--trusted-ca-file"}},
		{"serve --etcd-endpoint https://a:2379 --cacert /nowhere", []string{"--cacert /nowhere"}},
		{"serve --listen " + taken.Addr().String(), []string{"--listen " + taken.Addr().String(), "in use"}},
		{"serve --listen http://127.0.0.1:2378", []string{"--listen", "host:port"}},
		{"serve --log-level loud", []string{"--log-level loud", "debug"}},
		{"serve --log-format xml", []string{"--log-format xml", "json"}},
		{"serve --password secret", []string{"--password", "--user"}},
		{"serve extra", []string{"extra"}},
		{"server", []string{"server"}},
		{"status --endpoints http://a:2379,https://b:2379", []string{"--endpoints", "https://b:2379", "TLS", "plain text", "same scheme"}},
		{"status --endpoints a:2379,,b:2379", []string{"--endpoints", "want host:port"}},
		{"status --endpoints a:2379,http://a:2379", []string{"--endpoints", "the same as", "once"}},
		{"status --endpoints a", []string{"--endpoints", `"a"`, "host:port"}},
		{"status --endpoints http://a:2379 --cacert " + cert, []string{"--endpoints", "https"}},
		{"status --endpoints https://a:2379 --cacert " + cert, []string{"--cacert " + cert, "PEM"}},
		{"status --endpoints https://a:2379 --cacert /nowhere", []string{"--cacert /nowhere", "no such file"}},
		{"status --cert " + cert, []string{"--cert " + cert, "--key"}},
		{"status --key " + cert, []string{"--key " + cert, "--cert"}},
		{"status --shim-port 0", []string{"--shim-port 0", "2378"}},
		{"status --shim-port 65536", []string{"--shim-port"}},
		{"status --command-timeout 0s", []string{"--command-timeout 0s", "5s"}},
		{"status -w xml", []string{"--write-out xml", "json"}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := run(ctx, strings.Fields(tt.args)...)
			if err == nil {
				t.Fatal("it was accepted")
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

func TestFlagsComeFromTheEnvironmentToo(t *testing.T) {
	t.Setenv("QUORUMSHIM_ETCD_ENDPOINT", "ftp://env:2379")
	_, err := run(t.Context(), "serve")
	if err == nil || !strings.Contains(err.Error(), "ftp://env:2379") {
		t.Errorf("serve = %v, want an error about the endpoint from the environment", err)
	}
	_, err = run(t.Context(), "serve", "--etcd-endpoint", "gopher://flag:2379")
	if err == nil || !strings.Contains(err.Error(), "gopher://flag:2379") {
		t.Errorf("serve = %v, want an error about the endpoint from the flag, which wins", err)
	}
	t.Setenv("QUORUMSHIM_WINDOW", "soon")
	_, err = run(t.Context(), "serve")
	if err == nil || !strings.Contains(err.Error(), "QUORUMSHIM_WINDOW=soon in the environment") {
		t.Errorf("serve = %v, want an error that names the variable", err)
	}
	t.Setenv("QUORUMSHIM_WINDOW", "") // as a template leaves it
	if _, err = run(t.Context(), "serve"); err == nil || strings.Contains(err.Error(), "WINDOW") {
		t.Errorf("serve = %v, want the empty variable ignored", err)
	}
}

func TestEveryFlagHasAVariableOfItsOwn(t *testing.T) {
	for flag, want := range map[string]string{"etcd-endpoint": "QUORUMSHIM_ETCD_ENDPOINT", "cacert": "QUORUMSHIM_CACERT"} {
		if got := variable(flag); got != want {
			t.Errorf("variable(%q) = %s, want %s", flag, got, want)
		}
	}
}

func TestUserIsReadAsInEtcdctl(t *testing.T) {
	tests := []struct{ user, password, wantUser, wantPassword string }{
		{"root:pw", "", "root", "pw"},
		{"root:p:w", "", "root", "p:w"},
		{"root", "pw", "root", "pw"},
		{"ro:ot", "pw", "ro:ot", "pw"},
		{"root", "", "root", ""},
	}
	for _, tt := range tests {
		if user, password := splitUser(tt.user, tt.password); user != tt.wantUser || password != tt.wantPassword {
			t.Errorf("splitUser(%q, %q) = %q, %q; want %q, %q", tt.user, tt.password, user, password, tt.wantUser, tt.wantPassword)
		}
	}
}

func TestElectionTimeoutIsReadAsInEtcd(t *testing.T) {
	for value, want := range map[string]time.Duration{"1000": time.Second, "1s": time.Second, "250ms": 250 * time.Millisecond} {
		var m millis
		if err := m.Set(value); err != nil || time.Duration(m) != want {
			t.Errorf("Set(%q) = %v, %v; want %v", value, time.Duration(m), err, want)
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	out, err := run(t.Context(), "--version")
	if err != nil || !strings.HasPrefix(out, "quorumshim version ") {
		t.Errorf("--version = %q, %v; want a version", out, err)
	}
}

// lines takes a log and tells when a line with a word has come.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
	met chan struct{}
	wat string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	if l.wat != "" && strings.Contains(l.buf.String(), l.wat) {
		l.wat = ""
		close(l.met)
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestServeEndsWithItsContext(t *testing.T) {
	for drain, want := range map[string]time.Duration{"10ms": 10 * time.Millisecond, "0s": 1} {
		t.Run(drain, func(t *testing.T) { serveUntilItEnds(t, drain, want) })
	}
}

func serveUntilItEnds(t *testing.T, drain string, want time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &lines{met: make(chan struct{}), wat: "listening"}
	cmd := newCommand()
	cmd.SetArgs([]string{
		"serve", "--etcd-endpoint", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
		"--drain-time", drain, "--log-format", "json", "--election-timeout", "1000",
	})
	cmd.SetErr(log)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	select {
	case <-log.met:
	case err := <-done:
		t.Fatalf("serve ended with %v before it served", err)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("serve = %v, want nil after its context ended", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("serve --drain-time %s did not end within 30s of its context", drain)
	}
	if line := fmt.Sprintf(`"msg":"draining","for":%d}`, want); !strings.Contains(log.String(), line) {
		t.Errorf("the log is\n%s\nwant %s in it, not the default of 5s", log.String(), line)
	}
}
