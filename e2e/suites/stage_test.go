//go:build linux

package suites

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
)

// pretended is a fault that only writes down what is done.
func pretended(name string, effect Effect, diary *[]string, lifts error) Fault {
	return Fault{Name: name, Effect: effect, Inflict: func(context.Context, *Stage, *realetcd.Member) (lifter, error) {
		*diary = append(*diary, name)
		return func(context.Context) error { *diary = append(*diary, "lift "+name); return lifts }, nil
	}}
}

func TestStageLiftsFaultsLastFirstAndKnowsWhoWasHurt(t *testing.T) {
	st := &Stage{Log: slog.New(slog.DiscardHandler)}
	m := new(realetcd.Member)
	var diary []string
	stuck := errors.New("it is stuck")
	for _, f := range []Fault{pretended("cut", Isolates, &diary, nil), pretended("freeze", Silences, &diary, stuck)} {
		if err := st.Inflict(t.Context(), f, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range st.hurts {
		if h.From.IsZero() || !h.To.IsZero() {
			t.Errorf("%s lasts from %v to %v; want it to have begun and not ended", h.What, h.From, h.To)
		}
	}
	err := st.Lift(t.Context())
	if !errors.Is(err, stuck) || !strings.Contains(err.Error(), "freeze") {
		t.Errorf("Lift says %v; want the error of the fault that could not be lifted, with its name", err)
	}
	if got, want := strings.Join(diary, ", "), "cut, freeze, lift freeze, lift cut"; got != want {
		t.Errorf("what was done: %s; want %s", got, want)
	}
	if len(st.hurts) != 2 {
		t.Fatalf("%d members were hurt, want one twice", len(st.hurts))
	}
	for i, want := range []Effect{Isolates, Silences} {
		if h := st.hurts[i]; h.Effect != want || h.To.Before(h.From) {
			t.Errorf("hurt %d has effect %v and ends at %v, begun at %v; want effect %v and an end", i, h.Effect, h.To, h.From, want)
		}
	}
	if err := st.Lift(t.Context()); err != nil || len(diary) != 4 {
		t.Errorf("a second Lift did something (%v, %v); want nothing: all is lifted", diary, err)
	}
}

func TestFaultThatIsOverHurtsNobodyAnyMore(t *testing.T) {
	st := &Stage{Log: slog.New(slog.DiscardHandler)}
	over := Fault{Name: "kill-restart", Effect: Ends, Inflict: func(context.Context, *Stage, *realetcd.Member) (lifter, error) { return nil, nil }}
	if err := st.Inflict(t.Context(), over, new(realetcd.Member)); err != nil {
		t.Fatal(err)
	}
	if len(st.hurts) != 1 || st.hurts[0].To.IsZero() || len(st.lifts) != 0 {
		t.Errorf("hurts %v, lifts %d; want one hurt that has ended and nothing to lift", st.hurts, len(st.lifts))
	}
}

func TestFaultThatCannotBeHadHurtsNobody(t *testing.T) {
	st := &Stage{Log: slog.New(slog.DiscardHandler)}
	var diary []string
	if err := st.Inflict(t.Context(), pretended("cut", Isolates, &diary, nil), new(realetcd.Member)); err != nil {
		t.Fatal(err)
	}
	none := &nethosts.UnavailableError{What: "a host with too little memory", Why: "there are no control groups"}
	f := Fault{Name: "memory", Effect: Slows, Inflict: func(context.Context, *Stage, *realetcd.Member) (lifter, error) { return nil, none }}
	if err := st.Inflict(t.Context(), f, new(realetcd.Member)); !errors.Is(err, none) {
		t.Errorf("Inflict says %v; want that it cannot be had", err)
	}
	if len(st.hurts) != 1 || st.hurts[0].What != "cut" || !st.hurts[0].To.IsZero() {
		t.Errorf("hurts %v; want the cut alone: a fault that was left out would excuse what clients do for ever", st.hurts)
	}
}

func TestSlowLineOfALeaderHurtsAllMembers(t *testing.T) {
	leader, follower := new(realetcd.Member), new(realetcd.Member)
	for _, row := range []struct {
		fault  string
		target *realetcd.Member
		want   bool
	}{
		{"delay", leader, true}, {"delay", follower, false}, {"loss", leader, true}, {"rate", leader, true},
		{"cpu", leader, true}, {"cpu", follower, false}, {"memory", leader, true}, {"disk-slow", leader, true},
		{"cut", leader, false}, {"freeze", leader, false}, {"client-cut", leader, false}, {"client-cut-all", follower, true},
		{"delay", nil, false},
	} {
		if got := FaultNamed(row.fault).hitsAll(row.target, leader); got != row.want {
			t.Errorf("%s of %s: hits all members: %v, want %v", row.fault, map[bool]string{true: "the leader", false: "another"}[row.target == leader], got, row.want)
		}
	}
	if FaultNamed("delay").hitsAll(nil, nil) {
		t.Error("a fault of nobody hits all members where nobody leads")
	}
}

func TestFaultTableIsComplete(t *testing.T) {
	names := make(map[string]bool)
	for _, f := range Faults() {
		if f.Name == "" || names[f.Name] || f.Does == "" || f.Inflict == nil {
			t.Errorf("fault %q: needs a name of its own, what it does, and how", f.Name)
		}
		names[f.Name] = true
		for _, role := range f.roles() {
			switch {
			case f.Effect == Spares && f.Harm(role) != Unharmed:
				t.Errorf("fault %s spares the member: nothing may happen to the control of a %s", f.Name, role)
			case (f.Effect == Isolates || f.Effect == Silences) && !f.Everybody && f.Harm(role) != Stuck:
				t.Errorf("fault %s makes a %s useless: the control has to get stuck", f.Name, role)
			}
		}
		for _, shim := range shims {
			if b := f.Budget(shim); f.Effect == Isolates && !f.Everybody && (b.Calls == 0 || b.Streams == 0) {
				t.Errorf("fault %s with shim %v has no budget", f.Name, shim)
			}
		}
	}
	if f := FaultNamed("cut"); f.Name != "cut" {
		t.Errorf("FaultNamed found %q, want cut", f.Name)
	}
}
