//go:build linux

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// Main is the program. It ends when stdin does.
func Main() int { return serve(os.Stdin, os.Stdout, os.Stderr) }

// Exit statuses of the program.
const (
	exitStopped  = 0
	exitFailed   = 1 // what it was told to do could not be done
	exitOrphaned = 2 // stdin ended before a stop
)

// progressEvery is how often news go to the harness.
const progressEvery = 250 * time.Millisecond

// serve takes an order and then commands, and answers them. It leaves everything
// open where stdin ends early: its caller ends the process.
func serve(in io.Reader, out, log io.Writer) int {
	clock := time.Now()
	lines := json.NewDecoder(bufio.NewReader(in))
	var o order
	if err := lines.Decode(&o); err != nil {
		fmt.Fprintf(log, "app: no order on stdin: %v\n", err)
		return exitOrphaned
	}
	m := &mouth{out: json.NewEncoder(out)}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	commands := make(chan command)
	go listen(ctx, lines, commands, cancel)
	r, err := start(ctx, o, newClock(clock, o.Config.Zero), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		fmt.Fprintf(log, "app: %v\n", err)
		m.say(report{Error: err.Error()})
		return exitFailed
	}
	m.say(report{Started: true})
	return r.obey(ctx, commands, m)
}

// errOrphaned is why everything ends when stdin does.
var errOrphaned = errors.New("stdin ended")

// listen reads commands until stdin ends.
func listen(ctx context.Context, lines *json.Decoder, commands chan<- command, cancel context.CancelCauseFunc) {
	for {
		var c command
		if err := lines.Decode(&c); err != nil {
			cancel(errOrphaned)
			return
		}
		select {
		case commands <- c:
		case <-ctx.Done():
			return
		}
	}
}

// mouth writes lines, one at a time.
type mouth struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (m *mouth) say(r report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out.Encode(r) // a harness that is gone shows on stdin
}

// obey does one command after the other and tells of progress, until the stop.
func (r *runner) obey(ctx context.Context, commands <-chan command, m *mouth) int {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return exitOrphaned
		case <-tick.C:
			m.say(report{Progress: new(r.progress())})
		case c := <-commands:
			err := r.do(ctx, c)
			m.say(r.answer(c, err))
			switch {
			case c.Do != stop:
			case err != nil:
				return exitFailed
			default:
				return exitStopped
			}
		}
	}
}

// answer says what became of a command.
func (r *runner) answer(c command, err error) report {
	answer := report{Done: c.Seq}
	if err != nil {
		answer.Error = err.Error()
	}
	if c.Do == stepClock {
		answer.Ahead = r.clock.ahead()
	}
	return answer
}

func (r *runner) do(ctx context.Context, c command) error {
	switch c.Do {
	case setEndpoints:
		r.conn.setEndpoints(c.Endpoints, c.ShimAddresses)
		r.observer.SetEndpoints(observed(r.observer.Endpoints(), c.Endpoints)...)
		return nil
	case stepClock:
		return nethosts.StepWallClock(c.Step)
	case stop:
		return r.finish(ctx, c)
	default:
		return fmt.Errorf("unknown command %q", c.Do)
	}
}

// finish stops the load and writes its record.
func (r *runner) finish(ctx context.Context, c command) error {
	within, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	rec, err := r.stop(within, c.Upto)
	if errors.Is(err, errHangs) {
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	if err != nil {
		return err
	}
	return writeRecord(r.order.Record, rec)
}
