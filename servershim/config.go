package servershim

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config configures a [Shim]. The zero value works; zero in a field is its default,
// and what is out of range is an error of [New].
type Config struct {
	// Interval between the starts of two proofs. Default: a tenth of
	// ElectionTimeout, at least 100 ms, at most half of WindowFloor. Shorter finds a
	// loss sooner, down to what WindowFloor allows, and costs the member more reads.
	// Allowed: 10 ms to half of WindowFloor.
	Interval time.Duration
	// WindowFloor is the least age of the newest proof at which quorum is called
	// lost. Default: a quarter of ElectionTimeout, at least 250 ms, at most
	// ElectionTimeout. Shorter finds a loss sooner and takes more hiccups for one.
	// Allowed: twice the Interval to ElectionTimeout.
	WindowFloor time.Duration
	// ElectionTimeout is that of the etcd cluster (--election-timeout), and the
	// most that the window may grow to on a slow network. Default: 1 s. Allowed:
	// 100 ms to 50 s.
	ElectionTimeout time.Duration
	// GoodRounds is how many proofs in a row, each begun after the one before it
	// had completed, make a member serving again. Default: 3. More is calmer.
	// Allowed: 1 to 1000.
	GoodRounds int
	// HoldDownMax bounds how long a member that comes and goes has to stay good
	// before it is serving again: ElectionTimeout after the first loss, twice as long
	// after each that follows. It is also the time without a loss after which that
	// wait is halved. Default: 60 s. Less brings a sick member back sooner, to be
	// lost again. Allowed: ElectionTimeout to 1 h.
	HoldDownMax time.Duration
	// Poll is how often clients are told to poll while at most 1000 of them watch;
	// beyond that it grows with them, up to ten times this. Default: 500 ms. Less
	// finds a host that is gone sooner, and costs more calls. Allowed: 10 ms to 1 min.
	Poll time.Duration
	// Logger gets one line for each change of the verdict. Default: slog.Default().
	Logger *slog.Logger
	// Registerer gets these metrics while Run runs, which fails if it refuses them:
	// wrap it with labels for each of several shims (prometheus.WrapRegistererWith).
	// Default: none.
	//
	//   - quorumshim_quorum_held, quorumshim_serving: 1 or 0
	//   - quorumshim_window_seconds: age of the newest proof at which quorum is called lost
	//   - quorumshim_watchers: open Watch streams
	//   - quorumshim_proof_seconds: round trips of proofs, a histogram
	//   - quorumshim_proofs_total{outcome}: completed, late, timeout, failed
	//   - quorumshim_changes_total{reason}: changes of the verdict; empty: serving
	//   - quorumshim_late_wakes_total: times that the shim's own loop woke late
	Registerer prometheus.Registerer
}

const (
	defaultElectionTimeout = time.Second
	defaultInterval        = 100 * time.Millisecond
	defaultWindowFloor     = 250 * time.Millisecond
	defaultGoodRounds      = 3
	defaultHoldDownMax     = time.Minute
	defaultPoll            = 500 * time.Millisecond
)

// withDefaults fills zero fields. Intervals follow a longer election timeout; a
// shorter one, which only tests have, shortens them no further than it must.
func (c Config) withDefaults() Config {
	if c.ElectionTimeout == 0 {
		c.ElectionTimeout = defaultElectionTimeout
	}
	if c.WindowFloor == 0 {
		c.WindowFloor = min(max(defaultWindowFloor, c.ElectionTimeout/4), c.ElectionTimeout)
	}
	if c.Interval == 0 {
		c.Interval = min(max(defaultInterval, c.ElectionTimeout/10), c.WindowFloor/2)
	}
	if c.GoodRounds == 0 {
		c.GoodRounds = defaultGoodRounds
	}
	if c.HoldDownMax == 0 {
		c.HoldDownMax = max(defaultHoldDownMax, c.ElectionTimeout)
	}
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate checks fields that withDefaults has filled.
func (c Config) validate() error {
	switch {
	case c.ElectionTimeout < 100*time.Millisecond || c.ElectionTimeout > 50*time.Second:
		return fieldError("ElectionTimeout", c.ElectionTimeout, "100ms to 50s, as in etcd")
	case c.WindowFloor <= 0 || c.WindowFloor > c.ElectionTimeout:
		return fieldError("WindowFloor", c.WindowFloor, fmt.Sprintf("more than 0, at most ElectionTimeout (%v)", c.ElectionTimeout))
	case c.Interval < 10*time.Millisecond || c.Interval > c.WindowFloor/2:
		return fieldError("Interval", c.Interval, fmt.Sprintf("10ms up to half of WindowFloor (%v)", c.WindowFloor/2))
	case c.GoodRounds < 1 || c.GoodRounds > 1000:
		return fieldError("GoodRounds", c.GoodRounds, "1 to 1000")
	case c.HoldDownMax < c.ElectionTimeout || c.HoldDownMax > time.Hour:
		return fieldError("HoldDownMax", c.HoldDownMax, fmt.Sprintf("ElectionTimeout (%v) to 1h", c.ElectionTimeout))
	case c.Poll < 10*time.Millisecond || c.Poll > time.Minute:
		return fieldError("Poll", c.Poll, "10ms to 1m")
	}
	return nil
}

func fieldError(field string, got any, want string) error {
	return fmt.Errorf("servershim: Config.%s is %v: want %s", field, got, want)
}

// Validity is what to give healthsvc.ServerOptions for a shim with that Interval:
// the age of a report at which the shim's own loop counts as standing still. It is
// ten intervals, at least a second. Where Config.Interval is left at its default,
// pass a tenth of the ElectionTimeout; zero will do up to one of 1 s.
func Validity(interval time.Duration) time.Duration {
	return max(10*interval, time.Second)
}
