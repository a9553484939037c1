package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// cutPicture is a follower cut off, five seconds in.
func cutPicture() picture {
	return picture{
		fault: "follower-cut", does: "a follower loses its peers both ways; its client port stays open", at: ms(8040),
		members: []memberState{
			{name: "m1", leads: true, truth: word{"leader", good}, shim: word{"serving", good}, grade: word{"healthy", good}, ours: 3, official: 2},
			{name: "m2", truth: word{"cut off", bad}, shim: word{"no-quorum", bad}, grade: word{"unhealthy (no-quorum)", bad}, ours: 0, official: 2},
			{name: "m3", truth: word{"follower", good}, shim: word{"serving", good}, grade: word{"healthy", good}, ours: 3, official: 2},
		},
		clients: []clientState{
			{name: oursName, gets: 131.6, puts: 70, leases: 3, ttl: ms(4200), watches: []watchState{{"m1", ms(10)}, {"m3", ms(12)}, {"m3", 0}}},
			{
				name: officialName, gets: 4, waiting: 6, oldest: ms(4900), failed: 3, leases: 3, lost: 1, ttl: 0,
				watches: []watchState{{"m1", ms(10)}, {"m2", ms(5020)}, {"m3", ms(20)}},
			},
		},
	}
}

func cutStory() []event {
	return []event{
		{0, "both clients read, write, watch and keep leases on every member", plain},
		{ms(3000), "==> cut the follower from its peers (m2)", strong},
		{ms(3200), "ours: m2 is suspect (no-quorum)", warn},
		{ms(8020), "official: watch on m2 silent for 5.0 s", bad},
	}
}

func drawn(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text(0) + "\n")
	}
	return b.String()
}

func TestScreenShowsMembersClientsAndStory(t *testing.T) {
	for _, c := range []struct {
		name          string
		width, height int
		want          string
	}{
		{"wide", 100, 0, `
  8.0s  follower-cut: a follower loses its peers both ways; its client port stays open

member  in truth  shim says  our grade              streams ours/official
m1      leader    serving    healthy                3 / 2
m2      cut off   no-quorum  unhealthy (no-quorum)  0 / 2
m3      follower  serving    healthy                3 / 2

client      Gets/s  Puts/s  blocked    lease left   each watch silent for
quorumwise     132      70  -          4 s          m1 0.0 s  m3 0.0 s  m3 0.0 s
official         4       0  6 (4.9 s)  LOST 1 of 3  m1 0.0 s  m2 5.0 s  m3 0.0 s

  0.0s  both clients read, write, watch and keep leases on every member
  3.0s  ==> cut the follower from its peers (m2)
  3.2s  ours: m2 is suspect (no-quorum)
  8.0s  official: watch on m2 silent for 5.0 s
`},
		{"very narrow", 40, 18, `
  8.0s  follower-cut: a follower loses
its peers both ways; its client port
stays open

member  in truth  our grade
m1      leader    healthy
m2      cut off   unhealthy (no-quorum)
m3      follower  healthy

client      lease left   watch silent
quorumwise  4 s          0.0 s
official    LOST 1 of 3  5.0 s on m2

  3.2s  ours: m2 is suspect (no-quorum)
  8.0s  official: watch on m2 silent for
        5.0 s
`},
		{"narrow and low", 52, 16, `
  8.0s  follower-cut: a follower loses its peers
both ways; its client port stays open

member  in truth  shim says  our grade
m1      leader    serving    healthy
m2      cut off   no-quorum  unhealthy (no-quorum)
m3      follower  serving    healthy

client      blocked    lease left   watch silent
quorumwise  -          4 s          0.0 s
official    6 (4.9 s)  LOST 1 of 3  5.0 s on m2

  3.0s  ==> cut the follower from its peers (m2)
  3.2s  ours: m2 is suspect (no-quorum)
  8.0s  official: watch on m2 silent for 5.0 s
`},
	} {
		got := drawn(screen(cutPicture(), cutStory(), c.width, c.height))
		if d := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// A line that the terminal wraps breaks drawing in place.
func TestScreenFitsEveryTerminal(t *testing.T) {
	for width := 20; width <= 140; width++ {
		for height := 5; height <= 40; height++ {
			lines := screen(cutPicture(), cutStory(), width, height)
			for _, l := range lines {
				if l.width() > width {
					t.Fatalf("at %d columns: a line of %d: %q", width, l.width(), l.text(0))
				}
			}
			if len(lines) >= height {
				t.Fatalf("at %d rows: %d lines; want one row left for the cursor", height, len(lines))
			}
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func TestColoursChangeNoText(t *testing.T) {
	for _, l := range screen(cutPicture(), cutStory(), 70, 0) {
		coloured := l.write(70, true)
		if got, want := escapes.ReplaceAllString(coloured, ""), l.text(70); got != want {
			t.Errorf("without its colours the line is %q, want %q", got, want)
		}
	}
	if got := (line{{"LOST", bad}}).write(0, true); got != "\x1b[1;31mLOST\x1b[0m" {
		t.Errorf("a bad word is written as %q; want it bold and red", got)
	}
}

func TestStatusIsOneLineForBothClients(t *testing.T) {
	want := "  8.0s  quorumwise 132 Gets/s 70 Puts/s, watch silent 0.0 s, lease 4 s" +
		" | official 4 Gets/s 0 Puts/s, watch silent 5.0 s on m2, 6 calls blocked, lease LOST 1 of 3"
	if got := statusLine(cutPicture()).text(0); got != want {
		t.Errorf("status\n got %q\nwant %q", got, want)
	}
}
