package picker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
)

var (
	bytesSent = balancer.DoneInfo{BytesSent: true}
	nothing   = balancer.DoneInfo{}
)

func yes() bool { return true }

func mustFile(t *testing.T, c *Call, l *ledger) uint32 {
	t.Helper()
	n, what := c.file(l, yes)
	if what != filingDone {
		t.Fatalf("filing under %s: outcome %d, want done", l.address, what)
	}
	return n
}

func newCall(t *testing.T, class Class) (context.Context, *Call) {
	ctx, c := begin(context.Background(), &Hub{}, class, "/m")
	t.Cleanup(c.Finish)
	return ctx, c
}

func TestCallIsFoundInItsContextAndThoseDerived(t *testing.T) {
	ctx, c := newCall(t, ClassRead)
	derived, cancel := context.WithCancel(context.WithValue(ctx, t, 1))
	defer cancel()
	if got := callFrom(derived); got != c {
		t.Errorf("callFrom = %p, want %p: the picker could not file it", got, c)
	}
	if got := callFrom(context.Background()); got != nil {
		t.Errorf("callFrom(Background) = %p, want none", got)
	}
	var none context.Context // what a picker under test may be given
	if got := callFrom(none); got != nil {
		t.Errorf("callFrom(nil) = %p, want none", got)
	}
}

func TestEndFirstWinsAndTellsItsCause(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	ctx, c := newCall(t, ClassWatch)
	if c.Cause() != nil {
		t.Errorf("Cause before End = %v, want nil", c.Cause())
	}
	if !c.End(first) || c.End(second) {
		t.Error("want the first End to report true and the second false")
	}
	if got := context.Cause(ctx); got != first {
		t.Errorf("context's cause %v, want %v", got, first)
	}
	if got := c.Cause(); got != first {
		t.Errorf("Cause = %v, want %v", got, first)
	}
	c.Finish()
	if got := c.Cause(); got != first {
		t.Errorf("Cause after Finish = %v, want %v: the interceptor asks then", got, first)
	}
}

func TestEndWithoutCauseStandsForCanceled(t *testing.T) {
	ctx, c := newCall(t, ClassRead)
	c.End(nil)
	if c.Cause() != context.Canceled || context.Cause(ctx) != context.Canceled {
		t.Errorf("causes %v and %v, want %v", c.Cause(), context.Cause(ctx), context.Canceled)
	}
}

func TestFinishIsTheEnd(t *testing.T) {
	ctx, c := newCall(t, ClassRead)
	l := &ledger{address: "a"}
	mustFile(t, c, l)
	c.Finish()
	c.Finish()
	if ctx.Err() == nil {
		t.Error("the context is alive after Finish: it would never be freed")
	}
	if c.End(errors.New("late")) || c.Cause() != nil {
		t.Error("End after Finish had an effect")
	}
	if n := len(l.calls()); n != 0 {
		t.Errorf("%d calls listed after Finish, want 0", n)
	}
	if _, what := c.file(l, yes); what != filingOver {
		t.Errorf("a finished call was filed (outcome %d)", what)
	}
}

func TestUnknownClassIsOther(t *testing.T) {
	_, c := newCall(t, Class(99))
	if c.Class() != ClassOther {
		t.Errorf("class %v, want %v: arrays are indexed by it", c.Class(), ClassOther)
	}
}

func TestPickedIsWhenTheNewestPickWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newCall(t, ClassMutation)
		began := time.Now()
		time.Sleep(3 * time.Second)
		if !c.Picked().IsZero() {
			t.Errorf("Picked before any pick = %v, want zero", c.Picked())
		}
		l := &ledger{address: "a"}
		for range 2 {
			c.done(mustFile(t, c, l), nothing)
			if got := c.Picked(); !got.Equal(time.Now()) {
				t.Errorf("picked %v after the call began, want %v", got.Sub(began), time.Since(began))
			}
			time.Sleep(time.Second)
		}
	})
}

func TestDoneOfAnOlderAttemptLeavesTheNewerFiling(t *testing.T) {
	a, b := &ledger{address: "a"}, &ledger{address: "b"}
	_, c := newCall(t, ClassRead)
	first := mustFile(t, c, a)
	second := mustFile(t, c, b)
	if len(a.calls()) != 0 || len(b.calls()) != 1 || c.Address() != "b" {
		t.Fatalf("after the second pick: %d on a, %d on b, address %q", len(a.calls()), len(b.calls()), c.Address())
	}
	c.done(first, nothing)
	if len(b.calls()) != 1 {
		t.Fatal("the end of the first attempt took away the filing of the second")
	}
	c.done(second, nothing)
	if len(b.calls()) != 0 {
		t.Error("still listed after the second attempt ended")
	}
	if c.Address() != "b" {
		t.Errorf("address %q, want the last one: errors name it", c.Address())
	}
}

func TestSentIsNeverFalseWhenBytesWentOut(t *testing.T) {
	l := &ledger{address: "a"}
	for _, tc := range []struct {
		name string
		do   func(*Call)
		want bool
	}{
		{"never picked", func(*Call) {}, false},
		{"picked", func(c *Call) { mustFile(t, c, l) }, true},
		{"picked and given back unused", func(c *Call) { c.done(mustFile(t, c, l), nothing) }, false},
		{"used", func(c *Call) { c.done(mustFile(t, c, l), bytesSent) }, true},
		{"used, then a retry not", func(c *Call) {
			c.done(mustFile(t, c, l), bytesSent)
			c.done(mustFile(t, c, l), nothing)
		}, true},
		{"picked twice, one still out", func(c *Call) {
			first := mustFile(t, c, l)
			mustFile(t, c, l)
			c.done(first, nothing)
		}, true},
		{"ended while out", func(c *Call) { mustFile(t, c, l); c.End(nil) }, true},
		{"ended while out, then given back unused", func(c *Call) {
			n := mustFile(t, c, l)
			c.End(nil)
			c.done(n, nothing)
		}, false},
		{"finished before gRPC gave it back", func(c *Call) {
			n := mustFile(t, c, l)
			c.Finish()
			c.done(n, bytesSent)
		}, true},
		{"on a connection that is not followed", func(c *Call) { c.passed() }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, c := newCall(t, ClassMutation)
			tc.do(c)
			if got := c.Sent(); got != tc.want {
				t.Errorf("Sent = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCallsListsOldestFirstAlsoAfterARetry(t *testing.T) {
	l := &ledger{address: "a"}
	var all []*Call
	for range 5 {
		_, c := newCall(t, ClassRead)
		all = append(all, c)
		mustFile(t, c, l)
		time.Sleep(time.Microsecond)
	}
	c := all[1]
	c.done(c.attempt, nothing)
	mustFile(t, c, l) // last in the list now
	if got := l.calls(); !slices.Equal(got, all) {
		t.Errorf("order %v, want that of Began: who waits longest is moved first", got)
	}
}

func TestStaleFilingIsRefusedAndRetiredLedgersTakeNothing(t *testing.T) {
	l := &ledger{address: "a"}
	_, c := newCall(t, ClassRead)
	if _, what := c.file(l, func() bool { return false }); what != filingStale {
		t.Errorf("outcome %d, want stale", what)
	}
	if c.Sent() || c.Address() != "" || len(l.calls()) != 0 {
		t.Error("a refused filing left a trace")
	}
	n := mustFile(t, c, l)
	if l.retire() {
		t.Error("a ledger with a call on it was retired: the call could not be found any more")
	}
	c.done(n, nothing)
	if !l.retire() {
		t.Error("an empty ledger was not retired")
	}
	if _, what := c.file(l, yes); what != filingStale {
		t.Errorf("outcome %d on a retired ledger, want stale", what)
	}
}

// Random lives of calls, compared with a list of who should be where.
func TestLedgersAgreeWithADumbSecondVersion(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	ledgers := []*ledger{{address: "a"}, {address: "b"}, {address: "c"}}
	type attempt struct {
		n    uint32
		sent bool // it said so when it ended
		open bool
		at   string
	}
	type life struct {
		*Call
		attempts []attempt
		over     bool // ended or finished
	}
	var lives []*life
	for range 20 {
		_, c := newCall(t, Class(r.IntN(classes)))
		lives = append(lives, &life{Call: c})
	}
	for step := range 5000 {
		v := lives[r.IntN(len(lives))]
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			l := ledgers[r.IntN(len(ledgers))]
			n, what := v.file(l, yes)
			if (what == filingDone) == v.over {
				t.Fatalf("step %d: filing outcome %d of a call that is over: %v", step, what, v.over)
			}
			if what == filingDone {
				v.attempts = append(v.attempts, attempt{n: n, open: true, at: l.address})
			}
		case 4, 5, 6, 7:
			if len(v.attempts) == 0 {
				break
			}
			a := &v.attempts[r.IntN(len(v.attempts))]
			if a.open {
				a.open, a.sent = false, r.IntN(2) == 0
				v.done(a.n, balancer.DoneInfo{BytesSent: a.sent})
			}
		case 8:
			if r.IntN(4) == 0 {
				v.End(nil)
				v.over = true
			}
		case 9:
			_, c := newCall(t, Class(r.IntN(classes)))
			v.Finish()
			*v = life{Call: c}
		}
		want := map[string][]string{}
		for _, v := range lives {
			sent := false
			for _, a := range v.attempts {
				sent = sent || a.sent || a.open
			}
			if v.Sent() != sent {
				t.Fatalf("step %d: Sent %v, want %v", step, v.Sent(), sent)
			}
			if k := len(v.attempts); k > 0 && v.attempts[k-1].open && !v.over {
				at := v.attempts[k-1].at
				want[at] = append(want[at], fmt.Sprintf("%p", v.Call))
			}
		}
		for _, l := range ledgers {
			var got []string
			var count [classes]int
			for _, c := range l.calls() {
				got = append(got, fmt.Sprintf("%p", c))
				count[c.class]++
			}
			slices.Sort(got)
			slices.Sort(want[l.address])
			if !slices.Equal(got, want[l.address]) || count != l.counts() {
				t.Fatalf("step %d: on %s %v (counts %v), want %v (counts %v)", step, l.address, got, l.counts(), want[l.address], count)
			}
		}
	}
}
