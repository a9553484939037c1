//go:build linux

package suites

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// lines are findings.
type lines []string

func (l *lines) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

// join is the first few.
func (l lines) join(by string, most int) string {
	if len(l) > most {
		return strings.Join(l[:most], by) + fmt.Sprintf("%sand %d more", by, len(l)-most)
	}
	return strings.Join(l, by)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// shown prints a duration for people.
func shown(d time.Duration) string {
	if d == report.Never {
		return "never"
	}
	return d.Round(time.Millisecond).String()
}
