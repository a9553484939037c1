package history

import (
	"fmt"
	"strings"
	"time"
)

// most is how many violations one check tells.
const most = 10

// findings keeps the first violations of one check, a line each, and counts the rest.
type findings struct {
	lines []string
	total int
}

func (f *findings) add(format string, args ...any) {
	f.total++
	if len(f.lines) < most {
		f.lines = append(f.lines, oneLine(fmt.Sprintf(format, args...)))
	}
}

// list is at most ten lines; the last one counts those that are left out.
func (f *findings) list() []string {
	if f.total > most {
		f.lines[most-1] = fmt.Sprintf("and %d more violations of this check", f.total-most+1)
	}
	return f.lines
}

var ends = strings.NewReplacer("\n", " ", "\r", " ")

func oneLine(s string) string { return ends.Replace(s) }

// at shows a moment of a run.
func at(d time.Duration) string { return d.Round(time.Microsecond).String() }

// shown is a value for a reader: "" is the absence of the key.
func shown(value string) string {
	const long = 60 // bytes; what is unique about a value stands at its beginning
	switch {
	case value == "":
		return "nothing"
	case len(value) > long:
		return fmt.Sprintf("%q... (%d bytes)", value[:long], len(value))
	default:
		return fmt.Sprintf("%q", value)
	}
}
