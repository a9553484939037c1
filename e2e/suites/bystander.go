//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// A bystander is a client of ours beside the two applications, for what they cannot be
// told to do. It lives in the harness and dials from the host of our application, so
// that whatever hits that host's network hits it too. It watches a key that it counts up.
type bystander struct {
	cli *client.Client
	key string

	stop  context.CancelFunc // of the writer
	end   context.CancelFunc // of the watch
	write sync.WaitGroup
	read  sync.WaitGroup

	tally // of its watch
}

// bystanderConfig describes one. Zero: our client with all endpoints, which finds the
// shims by itself.
type bystanderConfig struct {
	Endpoints []string // default those of all members
	AutoSync  time.Duration
	Dial      []grpc.DialOption // default those of dialFrom our application's host; clients that are given the same ones share their probes
}

// bystanderEvery is how often the key is counted up.
const bystanderEvery = 100 * time.Millisecond

// dialsAtOnce bounds the dials of one option. Each holds a thread, and Go keeps as many threads as
// it ever needed.
const dialsAtOnce = 50

// dialFrom makes connections begin on a host, those of all clients that are given the option a few
// at a time.
func dialFrom(h *nethosts.Host) grpc.DialOption { return grpc.WithContextDialer(dialer(h.Do)) }

// dialer dials where do runs what it is given.
func dialer(do func(func() error) error) func(context.Context, string) (net.Conn, error) {
	dialling := make(chan struct{}, dialsAtOnce)
	return func(ctx context.Context, addr string) (conn net.Conn, err error) {
		select {
		case dialling <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d others are being dialled: %w", dialsAtOnce, context.Cause(ctx))
		}
		defer func() { <-dialling }()
		err = do(func() error {
			var d net.Dialer
			conn, err = d.DialContext(ctx, "tcp", addr)
			return err
		})
		return conn, err
	}
}

// newClient is a client of ours on the host of our application.
func newClient(st *Stage, cfg bystanderConfig) (*client.Client, error) {
	if cfg.Endpoints == nil {
		cfg.Endpoints = st.Cluster.Endpoints()
	}
	if cfg.Dial == nil {
		cfg.Dial = []grpc.DialOption{dialFrom(st.Ours.Host)}
	}
	return client.New(client.Config{
		Config: clientv3.Config{Endpoints: cfg.Endpoints, AutoSyncInterval: cfg.AutoSync, Logger: zap.NewNop(), DialOptions: cfg.Dial},
		Health: client.Health{Logger: slog.New(slog.DiscardHandler)},
	})
}

// attend starts a bystander. It is left or closed by whoever started it.
func attend(ctx context.Context, st *Stage, cfg bystanderConfig) (*bystander, error) {
	cli, err := newClient(st, cfg)
	if err != nil {
		return nil, err
	}
	b := &bystander{cli: cli, key: fmt.Sprintf("/bystanders/%d", time.Now().UnixNano())}
	writing, stop := context.WithCancel(ctx)
	watching, end := context.WithCancel(ctx)
	b.stop, b.end = stop, end
	events := cli.Watch(watching, b.key, clientv3.WithCreatedNotify())
	select {
	case <-events:
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), b.close())
	}
	b.read.Go(func() { b.follow(watching, events) })
	b.write.Go(func() {
		countUp(writing, bystanderEvery, func(ctx context.Context) error {
			_, err := cli.Put(ctx, b.key, "")
			return err
		})
	})
	return b, nil
}

// endpoints that the client knows now, as host:port.
func (b *bystander) endpoints() []string {
	var known []string
	for _, e := range b.cli.Endpoints() {
		known = append(known, strings.TrimPrefix(e, "http://"))
	}
	return known
}

// leave stops writing, waits for the watch to come to the end, and says what was wrong
// with it; "" if nothing was.
func (b *bystander) leave(ctx context.Context) (wrong string, err error) {
	defer func() { err = errors.Join(err, b.close()) }()
	b.stop()
	b.write.Wait()
	ask, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := b.cli.Get(ask, b.key)
	if err != nil {
		return fmt.Sprintf("the end is not known: %v", err), nil
	}
	return b.ended(ask, resp), context.Cause(ctx)
}

func (b *bystander) close() error {
	b.stop()
	b.end()
	b.write.Wait()
	err := b.cli.Close()
	b.read.Wait()
	return err
}
