package main

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorumwise/quorumwise/e2e/scenario"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// shims follows what every member's shim says, along the way of our application.
// It owns a connection and a goroutine for each member, until close.
type shims struct {
	stop  context.CancelFunc
	done  sync.WaitGroup
	conns []*grpc.ClientConn

	mu   sync.Mutex
	news map[string]healthsvc.News // by member
}

func followShims(st *scenario.Stage) (*shims, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &shims{stop: stop, news: make(map[string]healthsvc.News)}
	for _, m := range st.Cluster.Members() {
		address := st.Ours.View.Endpoint(m)
		if beside := st.Ours.View.Shim(address); beside != "" {
			address = beside
		}
		conn, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: time.Second,
			}))
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.conns = append(s.conns, conn)
		s.done.Go(func() {
			healthsvc.Follow(ctx, conn, healthsvc.FollowConfig{Tell: func(n healthsvc.News) { s.tell(m.Name(), n) }})
		})
	}
	return s, nil
}

func (s *shims) tell(member string, n healthsvc.News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news[member] = n
}

// newest is the last word of every shim.
func (s *shims) newest() map[string]healthsvc.News {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.news)
}

func (s *shims) close() error {
	s.stop()
	s.done.Wait()
	var errs []error
	for _, conn := range s.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
