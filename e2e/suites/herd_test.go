//go:build linux

package suites

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// A thousand clients that are told of two more members dial two thousand times at once.
func TestHerdDialsAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		at, most, dialled := 0, 0, 0
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			at += by
			most = max(most, at)
		}
		dial := dialer(func(func() error) error { // on a thread for a second
			count(1)
			defer count(-1)
			time.Sleep(time.Second)
			return errors.New("nobody is there")
		})
		impatient, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 100 * dialsAtOnce { // of which the last would have to wait 100 s
			all.Go(func() {
				_, err := dial(impatient, "10.0.0.1:2379")
				if errors.Is(err, context.DeadlineExceeded) {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				dialled++
			})
		}
		began := time.Now()
		all.Wait()
		if most != dialsAtOnce {
			t.Errorf("%d were dialling at once; want %d", most, dialsAtOnce)
		}
		if took := time.Since(began); took < 90*time.Second || took > 91*time.Second {
			t.Errorf("the impatient ones waited until %v; want the 90 s that they had, and a dial at most", took)
		}
		if least := 89 * dialsAtOnce; dialled < least || dialled > 91*dialsAtOnce {
			t.Errorf("%d were dialled in 90 s; want %d each second", dialled, dialsAtOnce)
		}
	})
}

func TestHerdThatDoesNotFitIsSkippedWithTheWayOut(t *testing.T) {
	for members, need := range map[int]uint64{3: 3500, 9: 9500} {
		if err := roomForHerd(need, members); err != nil {
			t.Errorf("%d open files for %d members: %v; want none", need, members, err)
		}
		err := roomForHerd(need-1, members)
		if _, ok := errors.AsType[*nethosts.UnavailableError](err); !ok || !strings.Contains(err.Error(), "raise the hard limit") {
			t.Errorf("%d open files for %d members: %v; want that this machine cannot have them, and what to do", need-1, members, err)
		}
	}
}
