// Package leak finds goroutines that tests leave behind, as goleak does, but waits longer for
// those that are about to end. What does not end in the time that the tests name is found all
// the same.
//
// It serves TestMain and single tests. Nothing here is shared; tests that run in parallel
// are leaks of each other to [VerifyNone].
package leak

import (
	"time"

	"go.uber.org/goleak"
)

// How long goroutines may take to end. goleak's own patience is less than half a second.
const (
	// Harness is for what tests play on: sockets, processes and etcd members take their
	// time on a busy machine.
	Harness = 10 * time.Second
	// Product is for what users run: a Close that returns while its goroutines run on is a
	// leak, however soon they end.
	Product = 1500 * time.Millisecond
)

// VerifyTestMain runs the tests, and fails where they leave goroutines behind.
func VerifyTestMain(m goleak.TestingM, within time.Duration, opts ...goleak.Option) {
	goleak.VerifyTestMain(settled{m, within, opts}, opts...)
}

// VerifyNone fails a test that leaves goroutines behind.
func VerifyNone(t goleak.TestingT, within time.Duration, opts ...goleak.Option) {
	settle(within, opts)
	goleak.VerifyNone(t, opts...)
}

// settled are tests that end when their goroutines have.
type settled struct {
	goleak.TestingM
	within time.Duration
	opts   []goleak.Option
}

// Run implements goleak.TestingM.
func (s settled) Run() int {
	status := s.TestingM.Run()
	if status == 0 { // otherwise nobody looks for leaks
		settle(s.within, s.opts)
	}
	return status
}

// settle waits until there are no leaks, or for as long as told. goleak itself waits a little
// each time.
func settle(within time.Duration, opts []goleak.Option) {
	for end := time.Now().Add(within); goleak.Find(opts...) != nil && time.Now().Before(end); {
	}
}
