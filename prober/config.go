package prober

import (
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Config configures a Prober. The zero value works. Durations may be 0, the default, to 1 h; the
// defaults marked (scaled), and all inner times, grow with an ElectionTimeout above 1 s.
type Config struct {
	// Credentials of the connections to etcd and to the shims. Default: plain text.
	// There is no falling back from TLS to plain text.
	Credentials credentials.TransportCredentials
	// DialOptions are added to those of the probes' own connections.
	DialOptions []grpc.DialOption
	// ShareKey, if not nil, must be comparable. Probers with equal ones share a probe
	// per target; whoever sets it vouches that Credentials and DialOptions are equal too.
	ShareKey any

	// Poll is the longest time between two checks of an endpoint that has a shim, unless
	// the shim asks for more. Default 500 ms (scaled). More costs speed against silent cuts, less costs
	// calls.
	Poll time.Duration
	// Timeout is the least time that a check may take; the deadline follows the measured round
	// trip above it. Default 150 ms (scaled). Less costs false suspicions.
	Timeout time.Duration
	// Hold is how long bad evidence must last, in comparison, until an endpoint is Unhealthy.
	// Default 300 ms (scaled). Less moves streams for a lost message, more leaves them waiting.
	Hold time.Duration
	// ElectionTimeout is that of the cluster. Default 1 s; a shorter one counts as 1 s.
	ElectionTimeout time.Duration

	// Logger gets one line per change of a grade. Default: slog.Default().
	Logger *slog.Logger
	// OnChange is called in the prober's goroutine, in order, whenever a verdict changed. It
	// must neither block nor call NoLeader or Close.
	OnChange func(*Snapshot)
}
