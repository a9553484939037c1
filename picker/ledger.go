package picker

import (
	"slices"
	"sync"
)

// ledger holds the calls in flight on one endpoint. Each endpoint has a lock of
// its own, so that calls to different endpoints do not wait for each other.
//
// Lock order: Call.mu, then ledger.mu. Nothing is called with ledger.mu held
// but the check that add is given.
type ledger struct {
	address string

	mu sync.Mutex
	// head and tail of a list linked through Call.prev and Call.next, in the
	// order of filing.
	head, tail *Call
	count      [classes]int
	// retired: taken out of the hub's books. Set once, when the ledger is empty
	// and its endpoint is gone; nothing is added from then on.
	retired bool
}

// add files the call if fresh still holds. The check is made with the lock
// held: whoever makes it false and lists the calls afterwards, which takes the
// lock too, sees every call that was filed on the old answer.
func (l *ledger) add(c *Call, fresh func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired || !fresh() {
		return false
	}
	c.prev, c.next = l.tail, nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.next = c
	}
	l.tail = c
	l.count[c.class]++
	return true
}

// remove takes out a call that is on the list.
func (l *ledger) remove(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.prev == nil {
		l.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	l.count[c.class]--
}

// retire closes an empty ledger for good and reports whether it did.
func (l *ledger) retire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head != nil {
		return false
	}
	l.retired = true
	return true
}

// calls returns a copy, oldest first. A call that was filed again by a retry
// stands late in the list but keeps the age of its beginning.
func (l *ledger) calls() []*Call {
	l.mu.Lock()
	n := 0
	for _, k := range l.count {
		n += k
	}
	out := make([]*Call, 0, n)
	for c := l.head; c != nil; c = c.next {
		out = append(out, c)
	}
	l.mu.Unlock()
	slices.SortStableFunc(out, func(a, b *Call) int { return a.began.Compare(b.began) })
	return out
}

func (l *ledger) counts() [classes]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func (l *ledger) streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[ClassWatch] + l.count[ClassLease] + l.count[ClassStream]
}
