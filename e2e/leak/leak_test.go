package leak

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// heard is a test that may fail.
type heard struct{ failed bool }

func (h *heard) Error(...any) { h.failed = true }

// ran are tests that start a goroutine.
type ran struct {
	status int
	start  func()
}

func (r ran) Run() int { r.start(); return r.status }

func TestOnlyGoroutinesThatDoNotEndAreLeaks(t *testing.T) {
	const slow = time.Second // goleak would have given up
	h := new(heard)
	ends := make(chan struct{})
	go func() { time.Sleep(slow); close(ends) }()
	began := time.Now()
	if VerifyNone(h, Harness); h.failed {
		t.Errorf("a goroutine that ends after %v is taken for a leak", slow)
	}
	if took := time.Since(began); took > Harness {
		t.Errorf("it took %v to see that all have ended; want hardly more than %v", took, slow)
	}
	<-ends

	stays, over := make(chan struct{}), make(chan struct{})
	go func() { <-stays; close(over) }()
	began = time.Now()
	if VerifyNone(h, slow); !h.failed {
		t.Error("a goroutine that does not end is not found")
	}
	if took := time.Since(began); took < slow {
		t.Errorf("a goroutine was given up after %v; want %v", took, slow)
	}
	h.failed = false
	if VerifyNone(h, Harness, goleak.IgnoreCurrent()); h.failed {
		t.Error("a goroutine that was there before is taken for a leak")
	}
	close(stays)
	<-over
}

func TestTestsEndWhenTheirGoroutinesHave(t *testing.T) {
	const slow = time.Second
	ends := make(chan struct{})
	sleeper := func() { go func() { time.Sleep(slow); close(ends) }() }
	if status := (settled{ran{0, sleeper}, Harness, nil}).Run(); status != 0 {
		t.Errorf("status %d, want that of the tests", status)
	}
	select {
	case <-ends:
	default:
		t.Error("they ended before their goroutine")
	}
	began := time.Now()
	if status := (settled{ran{1, func() {}}, Harness, nil}).Run(); status != 1 || time.Since(began) > slow {
		t.Errorf("status %d after %v; want that of tests that failed, at once", status, time.Since(began))
	}

	stays, over := make(chan struct{}), make(chan struct{})
	go func() { <-stays; close(over) }()
	began = time.Now()
	(settled{ran{0, func() {}}, slow, nil}).Run()
	if took := time.Since(began); took < slow || took > Product+slow {
		t.Errorf("a goroutine that does not end was waited for for %v; want hardly more than %v, as told", took, slow)
	}
	close(stays)
	<-over
}
