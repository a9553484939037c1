package client

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Config configures [New]: the official configuration, and ours.
type Config struct {
	clientv3.Config
	Health Health
}

// Health configures detection and moving. The zero value is right for a
// cluster with etcd's default election timeout; every duration left at zero
// takes its default, and the defaults marked (scaled) grow with ElectionTimeout
// where that is longer than one second. Ranges are checked by [Attach].
type Health struct {
	// ShimAddress gives the address (host:port) of the shim beside the etcd
	// endpoint at address, or "" for none. Default: the same host, port 2378.
	// Where no shim answers there, etcd's own port is asked (a shim in
	// process), and where none answers at all the client judges by itself.
	ShimAddress func(address string) string

	// Poll is how often a member's report is asked for, besides being pushed.
	// It bounds how long an unreachable or frozen member goes unnoticed.
	// Default 500 ms (scaled). Less finds it sooner and costs more requests. A
	// shim with many followers may ask for up to 10 s. Allowed: 10 ms to 1 h.
	Poll time.Duration

	// Hold is how long a member must stay suspect, while another one proves
	// its quorum, before its streams and mutations are moved. Default 300 ms
	// (scaled). Less moves sooner, and moves on a passing loss too. Allowed: 1 ms
	// to 1 h.
	Hold time.Duration

	// ElectionTimeout is the servers' --election-timeout. Default 1 s. Allowed: 10 ms
	// to 1 h.
	ElectionTimeout time.Duration

	// KeepaliveOverdue is how long a lease keepalive may stay unanswered
	// before its stream is opened again. Default 800 ms (scaled). Allowed: 10 ms
	// to 1 h. Less saves shorter leases, and opens streams for answers that are
	// only slow.
	KeepaliveOverdue time.Duration

	// MoveSpread is the time over which watches leave an unhealthy member, so
	// that many clients do not arrive elsewhere at once. Default 100 ms. Allowed:
	// up to 1 h; 1 ns is no spread. With
	// passwords each stream is a login, some 50 ms of a member's CPU: thousands of
	// such clients should take seconds.
	MoveSpread time.Duration

	// Rebalance is the time over which streams drift back to a member that
	// returned. Default 60 s; negative: they stay where they are. Any length.
	Rebalance time.Duration

	// Logger gets one line for each change of a verdict and each group of
	// moves. Default slog.Default().
	Logger *slog.Logger

	// Registerer, if set, gets these metrics until Close. Give each client of a
	// process its own labels (prometheus.WrapRegistererWith).
	//
	//   - quorumwise_client_endpoint_grade{endpoint, grade, source}: 1 for the present grade
	//   - quorumwise_client_moves_total{class, reason}: see [MoveKind]
	//   - quorumwise_client_endpoints_without_reports: endpoints that have no shim
	//   - quorumwise_client_fail_open: 1 while [Snapshot].FailOpen
	Registerer prometheus.Registerer

	// OnMove, if set, is told of every call and stream that is moved, from the
	// one goroutine that moves, after the fact. It must neither block nor close
	// the client: nothing moves meanwhile.
	OnMove func(Move)
}

// Move is one call or stream that was ended so that it goes elsewhere.
type Move struct {
	At       time.Time // when it was ended
	Method   string    // full gRPC method
	Class    string    // read, mutation, watch, lease, stream
	Endpoint string    // what was left
	Reason   string    // why: that of a verdict (see [EndpointHealth]), or one of the Reason constants
}

// Reasons of moves that no verdict stands behind.
const (
	ReasonDrift           = "rebalance"         // the stream drifts back to a member that returned
	ReasonKeepalive       = "keepalive-overdue" // a lease keepalive stayed unanswered
	ReasonEndpointRemoved = "endpoint-removed"  // the endpoint left the set (SetEndpoints, Sync)
	ReasonLeaderLost      = "leader-lost"       // a mutation did not complete within two election timeouts of the next leader
)

const (
	defaultElectionTimeout = time.Second
	defaultPoll            = 500 * time.Millisecond
	defaultHold            = 300 * time.Millisecond
	defaultOverdue         = 800 * time.Millisecond
	defaultSpread          = 100 * time.Millisecond
	defaultRebalance       = 60 * time.Second
	longest                = time.Hour // of any of them but Rebalance

	// gRPC for Go allows no shorter keepalive time; etcd answers more frequent
	// pings, or pings without a stream, with GOAWAY too_many_pings.
	defaultKeepAliveTime    = 10 * time.Second
	defaultKeepAliveTimeout = 3 * time.Second
)

// withDefaults fills in what is zero and refuses what cannot work.
func (h Health) withDefaults() (Health, error) {
	if h.ElectionTimeout == 0 {
		h.ElectionTimeout = defaultElectionTimeout
	}
	for _, f := range []struct {
		name          string
		value         *time.Duration
		fallback, min time.Duration
		scaled        bool
	}{
		{"Health.ElectionTimeout", &h.ElectionTimeout, 0, 10 * time.Millisecond, false},
		{"Health.Poll", &h.Poll, defaultPoll, 10 * time.Millisecond, true},
		{"Health.Hold", &h.Hold, defaultHold, time.Millisecond, true},
		{"Health.KeepaliveOverdue", &h.KeepaliveOverdue, defaultOverdue, 10 * time.Millisecond, true},
		{"Health.MoveSpread", &h.MoveSpread, defaultSpread, time.Nanosecond, false},
	} {
		if *f.value == 0 {
			*f.value = f.fallback
			if f.scaled && h.ElectionTimeout > defaultElectionTimeout {
				*f.value = time.Duration(float64(f.fallback) * float64(h.ElectionTimeout) / float64(defaultElectionTimeout))
			}
		}
		if *f.value < f.min || *f.value > longest {
			return h, &ConfigError{Field: f.name, Value: f.value.String(), Want: fmt.Sprintf("want %v to %v, or 0 for the default", f.min, longest)}
		}
	}
	if h.Rebalance == 0 {
		h.Rebalance = defaultRebalance
	}
	if h.ShimAddress == nil {
		h.ShimAddress = defaultShimAddress
	}
	if h.Logger == nil {
		h.Logger = slog.Default()
	}
	return h, nil
}

// setKeepAlive fills in the keepalive of the connection and refuses what etcd
// answers with GOAWAY too_many_pings.
func setKeepAlive(cfg *clientv3.Config) error {
	if cfg.PermitWithoutStream {
		return &ConfigError{
			Field: "PermitWithoutStream", Value: "true",
			Want: "etcd closes connections that ping without a stream (GOAWAY too_many_pings): leave it false, idle members are probed on another connection",
		}
	}
	if cfg.DialKeepAliveTime == 0 {
		cfg.DialKeepAliveTime = defaultKeepAliveTime
	}
	if cfg.DialKeepAliveTimeout == 0 {
		cfg.DialKeepAliveTimeout = defaultKeepAliveTimeout
	}
	return nil
}
