package realetcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

var errSoon = errors.New("realetcd: soon")


type Cluster struct{}

func Start(ctx context.Context, cfg Config) (*Cluster, error) { return nil, errSoon }
func (c *Cluster) Members() []*Member                         { return nil }
func (c *Cluster) Member(name string) *Member                 { return nil }

// Leader waits for one.
func (c *Cluster) Leader(ctx context.Context) (*Member, error)             { return nil, errSoon }
func (c *Cluster) Followers(ctx context.Context) ([]*Member, error)        { return nil, errSoon }
func (c *Cluster) Endpoints() []string                                     { return nil }
func (c *Cluster) ShimAddress(endpoint string) string                      { return "" }
func (c *Cluster) Client(members ...*Member) (*clientv3.Client, error)     { return nil, errSoon }
func (c *Cluster) TransferLeader(ctx context.Context, to *Member) error    { return errSoon }
func (c *Cluster) AddLearner(ctx context.Context) (*Member, error)         { return nil, errSoon }
func (c *Cluster) Promote(ctx context.Context, m *Member) error            { return errSoon }
func (c *Cluster) Remove(ctx context.Context, m *Member) error             { return errSoon }
func (c *Cluster) Replace(ctx context.Context, m *Member) (*Member, error) { return nil, errSoon }
func (c *Cluster) Settled(ctx context.Context, d time.Duration) error      { return errSoon }
func (c *Cluster) WaitOtherLeader(ctx context.Context, old *Member) (*Member, error) {
	return nil, errSoon
}

// RollingRestart stops and starts all members one by one, followers first, on binary ("": the same).
func (c *Cluster) RollingRestart(ctx context.Context, binary string, settled time.Duration) error {
	return errSoon
}

// Arrived is how often each mutation reached a server, by value; nil where nobody counts.
func (c *Cluster) Arrived() (map[string]int, error) { return nil, nil }
func (c *Cluster) Close() error                     { return nil }

type Member struct{}

func (m *Member) Name() string         { return "" }
func (m *Member) Host() *nethosts.Host { return nil }
func (m *Member) ID() uint64           { return 0 }
func (m *Member) Endpoint() string     { return "" }

// ShimAddr is host:port; "" for none or in process (ask Endpoint then).
func (m *Member) ShimAddr() string     { return "" }
func (m *Member) Disk() *nethosts.Disk { return nil }

// Etcd is nil while it is stopped.
func (m *Member) Etcd() *nethosts.Process { return nil }

// Shim is the sidecar's process, nil while there is none.
func (m *Member) Shim() *nethosts.Process                          { return nil }
func (m *Member) Running() bool                                    { return false }
func (m *Member) Stop(ctx context.Context) error                   { return errSoon }
func (m *Member) Kill() error                                      { return errSoon }
func (m *Member) Start(ctx context.Context) error                  { return errSoon }
func (m *Member) Restart(ctx context.Context, binary string) error { return errSoon }
func (m *Member) StartShim(ctx context.Context) error              { return errSoon }
func (m *Member) KillShim() error                                  { return errSoon }

// UseShim sets the kind for the member's next Start (and StartShim, for a sidecar).
func (m *Member) UseShim(kind Shim) error              { return nil }
func (m *Member) Defragment(ctx context.Context) error { return errSoon }

// Refuse: in-process kind only; new calls end with ResourceExhausted, the harness's excepted.
func (m *Member) Refuse(ctx context.Context, refuse bool) error { return errSoon }

// Log is the path of etcd's log, ShimLog of the sidecar's.
func (m *Member) Log() string     { return "" }
func (m *Member) ShimLog() string { return "" }
