package prober

import "time"

// times are the lengths by which a probe and a judge work, all derived from Config.
// It is comparable: probers share probes only with equal times.
type times struct {
	poll    time.Duration // longest time between path checks while a report is followed
	timeout time.Duration // least deadline of a path check
	hold    time.Duration // suspect to unhealthy

	// Without a report the path check carries the news "no leader", so it is as frequent as a
	// quorum window is wide.
	stockPoll    time.Duration
	proofEvery   time.Duration // proofs without a report
	proofRetry   time.Duration // proofs while one has failed, or a return depends on them
	proofTimeout time.Duration // least deadline of a proof
	recheck      time.Duration // path checks after a miss
	demand       time.Duration // least time between two starts on demand
	first        time.Duration // deadline of what has to connect first
	hard         time.Duration // end of any call; answers between deadline and this count as answers
	silent       time.Duration // a connection without a sign of life for that long is replaced
	redialMax    time.Duration
	seekFor      time.Duration // how long one search for a report lasts
	seekFirst    time.Duration // how long the first search holds back a verdict without reports
	seekMin      time.Duration // waits between searches
	seekMax      time.Duration
	observe      time.Duration // between observations while a report is followed
	observeSoon  time.Duration // the same without one, or while parked
	outlived     time.Duration // what was said so long before its contrary is over
	late         time.Duration // a loop woken later than this suspects itself

	look        time.Duration // between looks while somebody is suspect
	readRetry   time.Duration // etcd re-sends a lost read-index request only so often
	rounds      int           // completed proofs in a row until a condemned endpoint without a shim returns
	holdDown    time.Duration // second condemnation; doubles from there
	holdDownMax time.Duration
	forget      time.Duration // good for this long: earlier condemnations no longer count
}

// scaled derives all lengths. Explicit values stay as they are; defaults and the
// inner lengths grow with an election timeout above one second.
func scaled(c Config) times {
	s := func(d time.Duration) time.Duration {
		if c.ElectionTimeout <= time.Second {
			return d
		}
		return time.Duration(float64(d) * c.ElectionTimeout.Seconds())
	}
	or := func(v, def time.Duration) time.Duration {
		if v > 0 {
			return v
		}
		return s(def)
	}
	t := times{
		poll:         or(c.Poll, 500*time.Millisecond),
		timeout:      or(c.Timeout, 150*time.Millisecond),
		hold:         or(c.Hold, 300*time.Millisecond),
		proofEvery:   s(time.Second),
		proofRetry:   s(250 * time.Millisecond),
		proofTimeout: s(250 * time.Millisecond),
		recheck:      s(100 * time.Millisecond),
		demand:       s(100 * time.Millisecond),
		first:        s(time.Second),
		hard:         s(2 * time.Second),
		silent:       s(time.Second),
		redialMax:    s(2 * time.Second),
		seekFor:      s(3 * time.Second),
		seekFirst:    s(500 * time.Millisecond),
		seekMin:      s(time.Second),
		seekMax:      time.Minute,
		observe:      10 * time.Second,
		observeSoon:  s(time.Second),
		outlived:     s(20 * time.Second),
		late:         s(100 * time.Millisecond),
		look:         s(50 * time.Millisecond),
		readRetry:    s(500 * time.Millisecond),
		rounds:       3,
		holdDown:     s(time.Second),
		holdDownMax:  time.Minute,
		forget:       2 * time.Minute,
	}
	t.stockPoll = min(t.poll, s(250*time.Millisecond))
	t.seekMax = max(t.seekMax, t.seekMin)
	t.holdDownMax = max(t.holdDownMax, t.holdDown)
	return t
}
