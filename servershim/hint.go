package servershim

import "time"

const (
	manyWatchers = 1000 // up to here clients poll as often as they like
	maxStretch   = 10   // most that the interval is stretched
)

// pollHint is how often clients should poll while that many watch, so that the
// polls of a large crowd cost the member no more than those of manyWatchers.
func pollHint(base time.Duration, watchers int) time.Duration {
	if watchers <= manyWatchers {
		return base
	}
	stretched := base * time.Duration(min(watchers, maxStretch*manyWatchers)) / manyWatchers
	return min(stretched, maxStretch*base)
}
