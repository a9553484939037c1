package workload

import "time"

// Slow is how long a call may take before it counts as one that blocked.
const Slow = time.Second

// Progress is how far a load has come.
type Progress struct {
	Events     int         // delivered by all watches together
	LastEvent  time.Time   // on the watch that has been silent for longest
	Gets, Puts int         // returned, with or without an error
	Failed     int         // of these, with an error
	Slow       int         // of these, after longer than Slow
	Waiting    []time.Time // begins of the calls that have not returned
	Watches    []WatchProgress
	Leases     []LeaseProgress
}

// WatchProgress is one watch, in order of opening.
type WatchProgress struct {
	Name string    // also in Attempt.Watch
	Last time.Time // its last event; zero: none yet
}

// LeaseProgress is one lease, in order of granting, as an unaffected member sees it.
type LeaseProgress struct {
	TTL  TTL // the newest; zero: not asked yet
	Lost bool
}

// Progress may be called at any time.
func (l *Load) Progress() Progress {
	l.mu.Lock()
	p := Progress{Gets: len(l.gets), Puts: len(l.puts), Failed: l.failed, Slow: l.slow}
	for op := range l.waiting {
		p.Waiting = append(p.Waiting, op.Began)
	}
	l.mu.Unlock()
	for i, w := range l.watches {
		n, last := w.progress()
		p.Events += n
		p.Watches = append(p.Watches, WatchProgress{Name: w.rec.Name, Last: last})
		if i == 0 || last.Before(p.LastEvent) {
			p.LastEvent = last
		}
	}
	for _, le := range l.leases {
		p.Leases = append(p.Leases, le.progress())
	}
	return p
}

func (w *watch) progress() (int, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.rec.Events)
	if n == 0 {
		return 0, time.Time{}
	}
	return n, w.rec.Events[n-1].At
}

func (le *lease) progress() (p LeaseProgress) {
	le.note(func(r *LeaseRecord) {
		if n := len(r.TTLs); n > 0 {
			p.TTL = r.TTLs[n-1]
		}
		p.Lost = len(CheckLease(*r)) > 0
	})
	return p
}
