package servershim

import (
	"context"
	"time"
)

// gather runs the calls that the core asks for, each in a goroutine of its own.
// The loop owns it.
type gather struct {
	src      Source
	cancel   context.CancelFunc
	ctx      context.Context // of all calls
	outcomes chan outcome    // holds every call that may be out: sending never blocks
	out      int
}

// leaveTime is how long the end of Run waits for calls that ignore their context.
const leaveTime = time.Second

func newGather(ctx context.Context, src Source) *gather {
	ctx, cancel := context.WithCancel(ctx)
	return &gather{src: src, ctx: ctx, cancel: cancel, outcomes: make(chan outcome, maxOutstanding+2)}
}

// start runs one call with a deadline of its own.
func (g *gather) start(c call, deadline time.Duration) {
	g.out++
	ctx, cancel := context.WithTimeout(g.ctx, deadline)
	go func() {
		defer cancel()
		o := outcome{call: c}
		switch c.kind {
		case callProve:
			o.err = g.src.Prove(ctx)
		case callRead:
			o.err = g.src.Read(ctx)
		case callObserve:
			o.seen, o.err = g.src.Observe(ctx)
		}
		o.end = time.Now()
		g.outcomes <- o
	}()
}

// stop ends every call and waits for them, for at most leaveTime.
func (g *gather) stop() {
	g.cancel()
	patience := time.NewTimer(leaveTime)
	defer patience.Stop()
	for g.out > 0 {
		select {
		case <-g.outcomes:
			g.out--
		case <-patience.C:
			return
		}
	}
}
