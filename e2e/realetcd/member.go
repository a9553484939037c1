//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// Member is one etcd server with its shim, on a host of its own.
type Member struct {
	cluster  *Cluster
	name     string
	host     *nethosts.Host
	disk     *nethosts.Disk // nil without Config.Disks
	settings settings
	conn     *grpc.ClientConn // from the harness to the client port
	wire     wire             // counts for servers that do not

	life  sync.Mutex // serialises what starts and stops processes
	lives lives

	mu      sync.Mutex
	id      uint64
	learner bool
	binary  string // "": not needed yet
	kind    Shim
	etcd    *nethosts.Process // the last one that was started
	logged  int64             // bytes in Log when it was
	shim    *nethosts.Process // likewise
}

// Name is m1, m2 and so on; the host has the same.
func (m *Member) Name() string { return m.name }

// Host is where the member runs.
func (m *Member) Host() *nethosts.Host { return m.host }

// ID is the member's id in raft.
func (m *Member) ID() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id
}

// Endpoint is the client port, host:port.
func (m *Member) Endpoint() string { return strings.TrimPrefix(clientURL(m.address()), "http://") }

// ShimAddr is the address of the shim: a port of its own beside the member, or the
// client port for one inside; "" without.
func (m *Member) ShimAddr() string {
	switch m.ShimKind() {
	case ShimSidecar:
		return m.sidecarAddr()
	case ShimInProcess:
		return m.Endpoint()
	default:
		return ""
	}
}

// ShimKind is the kind that the member has, or will have from its next start on.
func (m *Member) ShimKind() Shim {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kind
}

// Disk is the disk of the member's own; nil without Config.Disks.
func (m *Member) Disk() *nethosts.Disk { return m.disk }

// Log is the file with etcd's own log, ShimLog that with the sidecar's.
func (m *Member) Log() string     { return path.Join(m.host.Dir(), "etcd.log") }
func (m *Member) ShimLog() string { return path.Join(m.host.Dir(), "quorumshim.log") }

// Etcd is the member's process; nil while it is stopped.
func (m *Member) Etcd() *nethosts.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return running(m.etcd)
}

// Shim is the process of the sidecar; nil while there is none.
func (m *Member) Shim() *nethosts.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return running(m.shim)
}

// Running says whether the member's process is there, frozen or not.
func (m *Member) Running() bool { return m.Etcd() != nil }

func running(p *nethosts.Process) *nethosts.Process {
	if p == nil {
		return nil
	}
	select {
	case <-p.Done():
		return nil
	default:
		return p
	}
}

func (m *Member) address() string     { return m.host.Addr().String() }
func (m *Member) sidecarAddr() string { return fmt.Sprintf("%s:%d", m.address(), ShimPort) }

// isLearner says whether it was added as one and not yet promoted.
func (m *Member) isLearner() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.learner
}

func (m *Member) setLearner(learner bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learner = learner
}

// UseShim sets the kind from the next start on; a sidecar can be started at once by
// StartShim. So a shim is rolled out, changed or taken away, member by member.
func (m *Member) UseShim(kind Shim) error {
	if kind < ShimNone || kind > ShimInProcess {
		return fmt.Errorf("realetcd: %s: UseShim(%v): want one of the constants", m.name, kind)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kind = kind
	return nil
}

// Start runs a stopped member on its old data and addresses, with its shim, and
// returns when it serves. A running one is left alone, but its sidecar is started if
// that was stopped. A voter serves when a majority does: members of a cluster that
// was stopped as a whole have to be started at the same time, or with [Member.Launch].
func (m *Member) Start(ctx context.Context) error {
	if err := m.Launch(ctx); err != nil {
		return err
	}
	return m.WaitServes(ctx)
}

// Launch is Start without waiting for anything; ctx is for building a server, if it
// comes to that.
func (m *Member) Launch(ctx context.Context) error {
	m.life.Lock()
	defer m.life.Unlock()
	if !m.Running() {
		if err := m.launchEtcd(ctx); err != nil {
			return fmt.Errorf("realetcd: start %s: %w", m.name, err)
		}
		m.cluster.cfg.Logger.Info("member started", "member", m.name, "endpoint", m.Endpoint(), "shim", m.ShimKind())
	}
	if m.ShimKind() == ShimSidecar {
		return m.launchShim()
	}
	return nil
}

func (m *Member) launchEtcd(ctx context.Context) error {
	logged := size(m.Log())
	var p *nethosts.Process
	var err error
	if m.ShimKind() == ShimInProcess {
		if err := m.wire.close(); err != nil {
			return err
		}
		own := embeddedFlags{arrivals: m.arrivals(), admin: m.adminAddr(), harness: m.cluster.cfg.Lab.Address().String()}
		args := append(m.settings.arguments(linked), own.arguments()...)
		p, err = m.run(m.Log(), func(out io.Writer) (*nethosts.Process, error) {
			return m.host.StartSelf(memberProgram, nethosts.Command{Args: args, Env: environment(os.Environ()), Stdout: out, Stderr: out})
		})
	} else {
		var binary string
		var v release
		if binary, v, err = m.server(ctx); err != nil {
			return err
		}
		if err := m.wire.open(m.host); err != nil {
			return err
		}
		p, err = m.run(m.Log(), func(out io.Writer) (*nethosts.Process, error) {
			return m.host.Start(nethosts.Command{Path: binary, Args: m.settings.arguments(v), Env: environment(os.Environ()), Stdout: out, Stderr: out})
		})
	}
	if err != nil {
		return err
	}
	m.lives.begin(life{what: "etcd", process: p, log: m.Log(), logged: logged})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.etcd, m.logged = p, logged
	return nil
}

// size is how many bytes are in a file; 0 where there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// server is the binary that the member runs, and its version.
func (m *Member) server(ctx context.Context) (string, release, error) {
	m.mu.Lock()
	binary := m.binary
	m.mu.Unlock()
	if binary == "" {
		var err error
		if binary, err = Build(ctx, ""); err != nil {
			return "", release{}, err
		}
	}
	v, err := m.cluster.versionOf(ctx, binary)
	return binary, v, err
}

// run starts a process whose output is appended to a file.
func (m *Member) run(log string, start func(io.Writer) (*nethosts.Process, error)) (*nethosts.Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own
	return start(out)
}

// WaitServes returns when the member answers and, if it votes, has a quorum; earlier
// with an error if it ends.
func (m *Member) WaitServes(ctx context.Context) error {
	return m.await(ctx, m.name+" to serve", func(ctx context.Context) error {
		if _, err := m.ask(ctx); err != nil || m.isLearner() {
			return err
		}
		_, err := m.prove(ctx)
		return err
	})
}

// ErrEnded says of a member that its process ended by itself.
var ErrEnded = errors.New("it ended")

// await tries until it succeeds; it gives up when ctx or the process ends.
func (m *Member) await(ctx context.Context, what string, try func(context.Context) error) error {
	m.mu.Lock()
	p, logged := m.etcd, m.logged
	m.mu.Unlock()
	if p == nil {
		return fmt.Errorf("realetcd: %s was not started", m.name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-p.Done():
			cancel(fmt.Errorf("%w (%v): %s", ErrEnded, p.Err(), excerpt(m.Log(), logged)))
		case <-over:
		}
	}()
	return poll(ctx, 20*time.Millisecond, what, func() (bool, error) {
		asking, cancel := context.WithTimeout(ctx, 2*askTimeout)
		defer cancel()
		err := try(asking)
		return err == nil, err
	})
}

// excerpt is how a log goes on after some bytes, for errors: the beginning, where the Go flag
// package complains, and the end, where everything else does.
func excerpt(path string, after int64) string {
	const first, last = 200, 600
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	data = data[min(after, int64(len(data))):]
	if len(data) > first+last {
		return fmt.Sprintf("%s: %q ... %q", path, data[:first], data[len(data)-last:])
	}
	return fmt.Sprintf("%s: %q", path, data)
}

// Stop ends the sidecar in order, then the member: SIGTERM, and SIGKILL when ctx
// ends first. Stopping a stopped one does nothing.
func (m *Member) Stop(ctx context.Context) error {
	m.life.Lock()
	defer m.life.Unlock()
	return errors.Join(m.stop(ctx, "shim", m.Shim()), m.stop(ctx, "member", m.Etcd()))
}

func (m *Member) stop(ctx context.Context, what string, p *nethosts.Process) error {
	if p == nil {
		return nil
	}
	m.lives.ask(p)
	if err := p.Stop(ctx); err != nil {
		return fmt.Errorf("realetcd: stop %s of %s: %w", what, m.name, err)
	}
	m.cluster.cfg.Logger.Info(what+" stopped", "member", m.name)
	return nil
}

// Kill ends the member by SIGKILL. A sidecar stays.
func (m *Member) Kill() error {
	m.life.Lock()
	defer m.life.Unlock()
	return m.kill("member", m.Etcd())
}

func (m *Member) kill(what string, p *nethosts.Process) error {
	if p == nil {
		return nil
	}
	m.lives.ask(p)
	if err := p.Kill(); err != nil {
		return fmt.Errorf("realetcd: kill %s of %s: %w", what, m.name, err)
	}
	m.cluster.cfg.Logger.Info(what+" killed", "member", m.name)
	return nil
}

// Restart stops the member, in order, and starts it again, on another binary if one
// is given: an upgrade. It returns when it serves.
func (m *Member) Restart(ctx context.Context, binary string) error {
	if err := m.Stop(ctx); err != nil {
		return err
	}
	if binary != "" {
		m.mu.Lock()
		m.binary = binary
		m.mu.Unlock()
	}
	return m.Start(ctx)
}

// StartShim runs the sidecar beside the member and returns when it answers, whatever
// it says. One that runs is left alone.
func (m *Member) StartShim(ctx context.Context) error {
	if kind := m.ShimKind(); kind != ShimSidecar {
		return fmt.Errorf("realetcd: %s has no sidecar but the kind %q: call UseShim(ShimSidecar) before", m.name, kind)
	}
	m.life.Lock()
	err := m.launchShim()
	m.life.Unlock()
	if err != nil {
		return err
	}
	return poll(ctx, 20*time.Millisecond, "the shim of "+m.name+" to answer", func() (bool, error) {
		asking, cancel := context.WithTimeout(ctx, 2*askTimeout)
		defer cancel()
		news, err := m.askShim(asking)
		return news.Status == healthsvc.StatusServing || news.Status == healthsvc.StatusNotServing, err
	})
}

func (m *Member) launchShim() error {
	if m.Shim() != nil {
		return nil
	}
	logged := size(m.ShimLog())
	args := []string{"serve", "--etcd-endpoint", clientURL(m.address()), "--listen", m.sidecarAddr(), "--drain-time", drainTime.String()}
	p, err := m.run(m.ShimLog(), func(out io.Writer) (*nethosts.Process, error) {
		return m.host.StartSelf(sidecarProgram, nethosts.Command{Args: args, Env: environment(os.Environ()), Stdout: out, Stderr: out})
	})
	if err != nil {
		return fmt.Errorf("realetcd: start shim of %s: %w", m.name, err)
	}
	m.lives.begin(life{what: "shim", process: p, log: m.ShimLog(), logged: logged})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shim = p
	m.cluster.cfg.Logger.Info("shim started", "member", m.name)
	return nil
}

// KillShim ends the sidecar by SIGKILL; StopShim by SIGTERM, and SIGKILL when ctx
// ends first. The member does not notice.
func (m *Member) KillShim() error {
	m.life.Lock()
	defer m.life.Unlock()
	return m.kill("shim", m.Shim())
}

// StopShim: see KillShim.
func (m *Member) StopShim(ctx context.Context) error {
	m.life.Lock()
	defer m.life.Unlock()
	return m.stop(ctx, "shim", m.Shim())
}

// Defragment defragments the member's store; it answers nothing meanwhile.
func (m *Member) Defragment(ctx context.Context) error {
	if _, err := pb.NewMaintenanceClient(m.conn).Defragment(ctx, &pb.DefragmentRequest{}); err != nil {
		return fmt.Errorf("realetcd: defragment %s: %w", m.name, err)
	}
	return nil
}

// Refuse makes a member with the in-process kind refuse new calls and streams with
// ResourceExhausted, as an overloaded one does, until it is told otherwise or
// started again. Streams that are open go on; the harness and health calls are
// never refused.
func (m *Member) Refuse(ctx context.Context, refuse bool) error {
	if m.ShimKind() != ShimInProcess || !m.Running() {
		return fmt.Errorf("realetcd: %s, kind %q: %w", m.name, m.ShimKind(), errNotInProcess)
	}
	if err := m.post(ctx, fmt.Sprintf("http://%s/refuse?on=%t", m.adminAddr(), refuse)); err != nil {
		return fmt.Errorf("realetcd: tell %s to refuse calls: %w", m.name, err)
	}
	return nil
}

func (m *Member) post(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1024)) // it explains the status, if it comes
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}

func (m *Member) adminAddr() string { return fmt.Sprintf("%s:%d", m.address(), adminPort) }
func (m *Member) arrivals() string  { return path.Join(m.host.Dir(), "arrivals") }
