// Package leak finds goroutines that tests leave behind, as goleak does, but waits longer for
// those that are about to end: sockets, processes and etcd members take their time on a busy
// machine. What does not end is found all the same.
//
// It serves TestMain and single tests. Nothing here is shared; tests that run in parallel
// are leaks of each other to [VerifyNone].
package leak

import (
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. goleak's own is less than half a second.
const patience = 10 * time.Second

// VerifyTestMain runs the tests, and fails where they leave goroutines behind.
func VerifyTestMain(m goleak.TestingM, opts ...goleak.Option) {
	goleak.VerifyTestMain(settled{m, opts}, opts...)
}

// VerifyNone fails a test that leaves goroutines behind.
func VerifyNone(t goleak.TestingT, opts ...goleak.Option) {
	verify(t, patience, opts)
}

func verify(t goleak.TestingT, within time.Duration, opts []goleak.Option) {
	settle(within, opts)
	goleak.VerifyNone(t, opts...)
}

// settled are tests that end when their goroutines have.
type settled struct {
	goleak.TestingM
	opts []goleak.Option
}

// Run implements goleak.TestingM.
func (s settled) Run() int {
	status := s.TestingM.Run()
	if status == 0 { // otherwise nobody looks for leaks
		settle(patience, s.opts)
	}
	return status
}

// settle waits until there are no leaks, or for as long as told. goleak itself waits a little
// each time.
func settle(within time.Duration, opts []goleak.Option) {
	for end := time.Now().Add(within); goleak.Find(opts...) != nil && time.Now().Before(end); {
	}
}
