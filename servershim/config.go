package servershim

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config configures a [Shim]. The zero value works.
type Config struct {
	// Interval between the starts of two proofs. Default: a tenth of
	// ElectionTimeout, at least 100 ms. Shorter finds a loss sooner, down to what
	// WindowFloor allows, and costs the member more reads.
	Interval time.Duration
	// WindowFloor is the least age of the newest proof at which quorum is called
	// lost. Default: a quarter of ElectionTimeout, at least 250 ms. Shorter finds a
	// loss sooner and takes more hiccups for one; at least twice the Interval.
	WindowFloor time.Duration
	// ElectionTimeout is that of the etcd cluster (--election-timeout), and the
	// most that the window may grow to on a slow network. Default: 1 s.
	ElectionTimeout time.Duration
	// GoodRounds is how many proofs in a row, each begun after the one before it
	// had completed, make a member serving again. Default: 3. More is calmer.
	GoodRounds int
	// HoldDownMax bounds how long a member that comes and goes has to stay good
	// before it is serving again: ElectionTimeout after the first loss, twice as long
	// after each that follows. It is also the time without a loss after which that
	// wait is halved. Default: 60 s. Less brings a sick member back sooner, to be
	// lost again.
	HoldDownMax time.Duration
	// Poll is how often clients are told to poll while at most 1000 of them watch;
	// beyond that it grows with them, up to ten times this. Default: 500 ms.
	Poll time.Duration
	// Logger gets one line for each change of the verdict. Default: slog.Default().
	Logger *slog.Logger
	// Registerer gets the metrics while Run runs. Default: none.
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

// Validity is what to give healthsvc.ServerOptions for a shim with that Interval
// (zero: the default one at an ElectionTimeout of 1 s): the age of a report at which the shim's own loop
// counts as standing still. It is ten intervals, at least a second.
func Validity(interval time.Duration) time.Duration {
	return max(10*interval, time.Second)
}
