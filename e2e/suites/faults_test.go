//go:build linux

package suites

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// still is an application whose wall clock is so far ahead, whatever it is told.
type still struct {
	ahead time.Duration
	err   error
}

func (still) Name() string { return "ours" }

func (s still) StepClock(context.Context, time.Duration) (time.Duration, error) {
	return s.ahead, s.err
}

func TestClockThatDoesNotStepIsAnError(t *testing.T) {
	const hour = time.Hour
	for _, row := range []struct {
		name    string
		app     still
		d, want time.Duration
		says    string
	}{
		{"it steps", still{ahead: hour + 900*time.Millisecond}, hour, hour, ""},
		{"it steps back", still{ahead: -20 * time.Millisecond}, -hour, 0, ""},
		{"it stays", still{}, hour, hour, "the wall clock of ours is 0s ahead after a step of 1h0m0s, want 1h0m0s"},
		{"it steps by less", still{ahead: hour - 1100*time.Millisecond}, hour, hour, "want 1h0m0s"},
		{"it stays ahead", still{ahead: hour}, -hour, 0, "is 1h0m0s ahead after a step of -1h0m0s, want 0s"},
		{"it cannot", still{err: errors.New("an ordinary runtime")}, hour, hour, "an ordinary runtime"},
	} {
		err := steppedTo(t.Context(), row.app, row.d, row.want)
		if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%s: error %v, want %q", row.name, err, row.says)
		}
	}
}
