package report

import "time"

// band is a part of a scenario's time.
type band struct {
	from, to time.Duration
	fault    bool // else it is mended
}

// bands tells when something was at fault and when all was mended again. Faults may
// overlap: where there are as many mended marks as faults, each ends one; else a mended
// mark ends all of them.
func bands(marks []Mark, end time.Duration) []band {
	faults, mended := 0, 0
	for _, m := range marks {
		switch m.Kind {
		case FaultMark:
			faults++
		case MendedMark:
			mended++
		case NoteMark:
		}
	}
	var all []band
	open := 0
	for _, m := range marks {
		switch m.Kind {
		case FaultMark:
			if open == 0 {
				all = append(closeBand(all, m.At), band{from: m.At, to: end, fault: true})
			}
			open++
		case MendedMark:
			if open == 0 {
				break
			}
			open--
			if faults != mended {
				open = 0
			}
			if open == 0 {
				all = append(closeBand(all, m.At), band{from: m.At, to: end})
			}
		case NoteMark:
		}
	}
	return all
}

func closeBand(all []band, at time.Duration) []band {
	if len(all) > 0 {
		all[len(all)-1].to = at
	}
	return all
}

// firstFault is when the first fault was made, and whether there was one.
func firstFault(marks []Mark) (time.Duration, bool) {
	for _, m := range marks {
		if m.Kind == FaultMark {
			return m.At, true
		}
	}
	return 0, false
}

// axisStep is the distance of the marks on an axis, so that there are at most most.
func axisStep(end time.Duration, most int) time.Duration {
	for _, step := range []time.Duration{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600} {
		if int(end/(step*time.Second)) <= most {
			return step * time.Second
		}
	}
	hours := end / time.Hour / time.Duration(most)
	return (hours + 1) * time.Hour
}
