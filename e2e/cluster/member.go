package cluster

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/e2e/relay"
)

// Member is one etcd server with the shim beside it.
type Member struct {
	cluster    *Cluster
	name       string
	peerTLS    transport.TLSInfo
	peerAddr   string // where it really listens for its peers
	clientAddr string
	shimAddr   string
	peerDoor   *relay.Door // what it advertises to its peers

	// life serialises Start, Stop, StartShim and StopShim.
	life sync.Mutex

	mu   sync.Mutex
	etcd *embed.Etcd // nil while stopped
	shim shim        // nil while there is none
}

// Name is m1, m2 and so on.
func (m *Member) Name() string { return m.name }

// ClientAddr is the member's own client port, host:port.
func (m *Member) ClientAddr() string { return m.clientAddr }

// ShimAddr is the port of the shim beside the member; "" if the cluster's shims
// have no port of their own.
func (m *Member) ShimAddr() string {
	if !m.cluster.cfg.Shim.standsBeside() {
		return ""
	}
	return m.shimAddr
}

// Server is the running etcd server, nil while the member is stopped.
func (m *Member) Server() *etcdserver.EtcdServer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.etcd == nil {
		return nil
	}
	return m.etcd.Server
}

// ID is the member's id in raft; 0 before its first start.
func (m *Member) ID() uint64 {
	if s := m.Server(); s != nil {
		return uint64(s.MemberID())
	}
	return 0
}

// Start runs a stopped member on its old data and addresses, with its shim, and
// returns when it serves. A running one is left alone.
func (m *Member) Start(ctx context.Context) error {
	m.life.Lock()
	defer m.life.Unlock()
	if m.Server() != nil {
		return nil
	}
	cfg, err := m.config()
	if err != nil {
		return err
	}
	inside, err := m.attachShim(cfg)
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("cluster: start %s (log in %s): %w", m.name, m.log(), err)
	}
	m.mu.Lock()
	m.etcd = e
	m.mu.Unlock()
	select {
	case <-e.Server.ReadyNotify():
	case err = <-e.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("cluster: start %s (log in %s): %w", m.name, m.log(), err)
	}
	m.cluster.cfg.Logger.Info("member started", "member", m.name, "client", m.clientAddr)
	if inside != nil {
		m.setShim(inside)
		return inside.Start(e)
	}
	if m.cluster.cfg.Shim.standsBeside() {
		return m.runShim()
	}
	return nil
}

// Stop ends the member and its shim in order. Stopping a stopped one does nothing.
func (m *Member) Stop() error {
	m.life.Lock()
	defer m.life.Unlock()
	err := m.endShim()
	m.mu.Lock()
	e := m.etcd
	m.etcd = nil
	m.mu.Unlock()
	if e != nil {
		e.Close()
		m.cluster.cfg.Logger.Info("member stopped", "member", m.name)
	}
	return err
}

// log is the file of the member's own log.
func (m *Member) log() string { return filepath.Join(m.cluster.dir, m.name+".log") }

func (m *Member) config() (*embed.Config, error) {
	c := m.cluster
	cfg := embed.NewConfig()
	cfg.Name = m.name
	cfg.Dir = filepath.Join(c.dir, m.name)
	cfg.ListenPeerUrls = []url.URL{{Scheme: "https", Host: m.peerAddr}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "https", Host: m.peerDoor.Addr()}}
	cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: m.clientAddr}}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	cfg.PeerTLSInfo = m.peerTLS
	cfg.InitialCluster = c.initialCluster()
	cfg.InitialClusterToken = filepath.Base(c.dir)
	cfg.TickMs = uint(c.cfg.Heartbeat / time.Millisecond)
	cfg.ElectionMs = uint(c.cfg.Election / time.Millisecond)
	cfg.UnsafeNoFsync = true
	if n := c.cfg.SnapshotCount; n > 0 {
		cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = n, n
	}
	logger, err := m.logger()
	if err != nil {
		return nil, err
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	if arrived := c.cfg.Arrived; arrived != nil {
		cfg.GRPCAdditionalServerOptions = append(cfg.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(m.report(arrived)))
	}
	return cfg, nil
}

func (m *Member) report(arrived func(Arrival)) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		arrived(Arrival{Member: m.name, Method: info.FullMethod, Request: req, At: time.Now()})
		return handler(ctx, req)
	}
}

func (m *Member) logger() (*zap.Logger, error) {
	cfg := zap.NewProductionConfig()
	cfg.OutputPaths = []string{m.log()}
	cfg.ErrorOutputPaths = cfg.OutputPaths
	cfg.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	cfg.Sampling = nil
	return cfg.Build()
}

// initialCluster is etcd's form of who belongs to the cluster, name=url,...
func (c *Cluster) initialCluster() string {
	var pairs []string
	for _, m := range c.members {
		pairs = append(pairs, m.name+"=https://"+m.peerDoor.Addr())
	}
	return strings.Join(pairs, ",")
}
