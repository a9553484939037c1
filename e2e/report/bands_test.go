package report

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestBandsFollowFaultsAndRepairs(t *testing.T) {
	for _, c := range []struct{ marks, want string }{
		{"", ""},
		{"n1", ""},
		{"m1", ""}, // nothing was at fault
		{"f2", "fault 2-10"},
		{"f2 m5", "fault 2-5, mended 5-10"},
		{"f2 n3 m5 f7", "fault 2-5, mended 5-7, fault 7-10"},
		{"f2 f3 m5 m6", "fault 2-6, mended 6-10"}, // each repair ends one
		{"f2 f3 m5", "fault 2-5, mended 5-10"},    // one repair ends both
		{"f1 m2 f3 m4", "fault 1-2, mended 2-3, fault 3-4, mended 4-10"},
	} {
		var marks []Mark
		for m := range strings.FieldsSeq(c.marks) {
			kind := map[byte]MarkKind{'f': FaultMark, 'm': MendedMark, 'n': NoteMark}[m[0]]
			marks = append(marks, Mark{At: time.Duration(m[1]-'0') * time.Second, Kind: kind})
		}
		var got []string
		for _, b := range bands(marks, 10*time.Second) {
			got = append(got, fmt.Sprintf("%s %.0f-%.0f", map[bool]string{true: "fault", false: "mended"}[b.fault], b.from.Seconds(), b.to.Seconds()))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q: %s; want %s", c.marks, s, c.want)
		}
	}
}

func TestAxisIsNeverCrowded(t *testing.T) {
	for end := time.Second; end < 5000*time.Hour; end = end*3/2 + time.Second {
		step := axisStep(end, 24)
		if n := int(end / step); n > 24 || step < time.Second {
			t.Errorf("%v: a mark every %v makes %d of them, want at most 24", end, step, n)
		}
	}
}
