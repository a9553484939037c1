package report

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func sec(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func oneLane(spans ...Span) Scenario {
	return Scenario{Name: "x", End: sec(10), Lanes: []Lane{{Member: "m1", Truth: spans}}}
}

// rects gives the drawn spans: class, left edge, right edge, title.
func rects(t *testing.T, drawing string) []string {
	t.Helper()
	var all []string
	for _, m := range regexp.MustCompile(`(?s)<rect class="s (\w+)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*>(?:<title>(.*?)</title>)?`).FindAllStringSubmatch(drawing, -1) {
		x, _ := strconv.ParseFloat(m[2], 64)
		w, _ := strconv.ParseFloat(m[3], 64)
		all = append(all, fmt.Sprintf("%s %.0f-%.0f", m[1], x, x+w))
	}
	return all
}

func TestStatesAreDrawnWhereTheyWere(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []Span
		want  string
	}{
		{"two states", []Span{{To: sec(5), State: "quorum"}, {From: sec(5), To: sec(10), State: "frozen"}}, "good 132-600, frozen 600-1068"},
		{"neighbours that say the same are one", []Span{{To: sec(5), State: "quorum"}, {From: sec(5), To: sec(10), State: "quorum"}}, "good 132-1068"},
		{"with another reason they are two", []Span{{To: sec(5), State: "mute"}, {From: sec(5), To: sec(10), State: "mute", Detail: "x"}}, "worse 132-600, worse 600-1068"},
		{"trouble is seen however short it was", []Span{{To: sec(5), State: "quorum"}, {From: sec(5), To: sec(5) + 1, State: "no-leader"}, {From: sec(5) + 1, To: sec(10), State: "quorum"}}, "good 132-600, doubt 600-601, good 601-1068"},
		{"what is not known is drawn as such", []Span{{To: sec(10), State: "asleep"}}, "unknown 132-1068"},
		{"outside the timeline there is nothing", []Span{{From: -sec(5), To: sec(50), State: "leader"}}, "leader 132-1068"},
		{"what comes before the first second that is known is left out", []Span{{From: sec(5.5), To: sec(10), State: "quorum"}}, "good 226-1068"},
		{"backwards there is nothing", []Span{{From: sec(0.5), To: sec(0.2), State: "stopped"}}, ""},
	} {
		if got := strings.Join(rects(t, string(drawTimeline(oneLane(c.spans...)))), ", "); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}

func TestEveryStateHasALookOfItsOwnKind(t *testing.T) {
	for _, truth := range []string{"stopped", "frozen", "mute", "no-leader", "no-quorum", "learner", "leader", "quorum"} {
		for _, other := range []string{"stopped", "frozen", "mute", "no-leader", "no-quorum", "learner", "leader", "quorum"} {
			if truth != other && lookOf(truth).class == lookOf(other).class {
				t.Errorf("%s and %s look the same", truth, other)
			}
		}
	}
	for state := range looks {
		if class := lookOf(state).class; !strings.Contains(pageStyle, ".s."+class+"{") {
			t.Errorf("%s: the style sheet does not know .s.%s: it would be black", state, class)
		}
	}
}

func TestTimelineIsWellFormedAndTellsTheTimeFromTheFault(t *testing.T) {
	sc := oneLane(Span{To: sec(3), State: "quorum"}, Span{From: sec(3), To: sec(9), State: "no-quorum", Detail: "no leader <yet>"})
	sc.TargetMember, sc.Target = "m1", "follower"
	sc.Marks = []Mark{{sec(2.5), FaultMark, "cut <m1> & more"}, {sec(8), MendedMark, "heal"}}
	sc.Lanes[0].Shim = []Span{{To: sec(4), State: "serving"}, {From: sec(4), To: sec(9), State: "not-serving", Detail: "no <proof>"}}
	sc.Apps = []App{
		{
			Name: "ours", Members: []Use{{
				Member: "m1", Calls: []Point{{0, 3}}, Streams: []Point{{0, 2}, {sec(3.2), 0}},
				Grades: []Span{{To: sec(3.1), State: "healthy"}, {From: sec(3.1), To: sec(9), State: "suspect", Detail: "says <no>"}},
			}},
			Moves: []Move{{sec(3.2), "m1", "watch", "no quorum"}, {sec(3.21), "m1", "lease", "no quorum"}, {sec(6), "m2", "watch", "?"}},
		},
		{Name: "control", Official: true, Members: []Use{{
			Member: "m1", Calls: []Point{{0, 7}, {sec(1), 4}}, Streams: []Point{{0, 5}, {sec(9), 0}},
			Grades: []Span{{To: sec(9), State: "parked"}}, // the official client gives none, and none is drawn
		}}},
	}
	drawing := string(drawTimeline(sc))
	if err := xml.Unmarshal([]byte(drawing), new(struct{})); err != nil {
		t.Fatalf("%v:\n%s", err, drawing)
	}
	for _, want := range []string{
		"m1 state: no quorum from 3.00 s (fault + 0.50 s) to 9.00 s (fault + 6.50 s), for 6.00 s\nno leader &lt;yet&gt;",
		"2 moved off m1:\nwatch at 3.20 s (fault + 0.70 s): no quorum\nlease at 3.21 s (fault + 0.71 s): no quorum",
		"m1 shim: serving from 0.000 s to 4.00 s (fault + 1.50 s), for 4.00 s",
		"m1 shim: not serving from 4.00 s (fault + 1.50 s) to 9.00 s (fault + 6.50 s), for 5.00 s\nno &lt;proof&gt;",
		"m1 client: healthy from 0.000 s to 3.10 s (fault + 0.60 s), for 3.10 s",
		"m1 client: suspect from 3.10 s (fault + 0.60 s) to 9.00 s (fault + 6.50 s), for 5.90 s\nsays &lt;no&gt;",
		"✕ cut &lt;m1&gt; &amp; more", "target follower",
		"calls of ours on m1: 3;", "calls of control on m1: 11;",
		"streams of ours on m1; most anywhere: 5", "streams of control on m1; most anywhere: 5",
	} {
		if !strings.Contains(drawing, want) {
			t.Errorf("%q is not in the drawing:\n%s", want, drawing)
		}
	}
	if strings.Contains(drawing, "m1 client: parked") {
		t.Error("a grade is drawn for the official client, which gives none")
	}
}

func TestTextsOfMarksNeverCollide(t *testing.T) {
	for n := range 40 {
		tl := &timeline{end: sec(60)}
		for i := range n {
			kind := []MarkKind{FaultMark, MendedMark, NoteMark}[i%3]
			tl.marks = append(tl.marks, Mark{At: sec(float64(i*i*7%600) / 10), Kind: kind, Text: strings.Repeat("word ", 1+i%5)})
		}
		labels := tl.lines()
		if n > 0 && len(labels) == 0 {
			t.Errorf("%d marks and no text", n)
		}
		for i, a := range labels {
			for j, b := range labels {
				if a.line > b.line && b.from < a.x && a.x < b.to {
					t.Errorf("%d marks: the line down from %q crosses %q", n, a.text, b.text)
				}
				if j < i && a.line == b.line && a.from < b.to && b.from < a.to {
					t.Errorf("%d marks: %q and %q stand on each other", n, a.text, b.text)
				}
			}
		}
	}
}

func TestEmptyScenarioHasNoTimeline(t *testing.T) {
	if got := drawTimeline(Scenario{Name: "skipped"}); got != "" {
		t.Errorf("%s", got)
	}
	if got := drawTimeline(Scenario{Lanes: []Lane{{Member: "m1"}}}); !strings.Contains(string(got), "m1") {
		t.Error("a member without samples is not shown")
	}
}
