//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// screen shows a run: on a terminal one line that lives below what is said, elsewhere
// plain lines. It is owned by [play].
type screen struct {
	out     io.Writer
	width   func() (int, bool) // of the terminal; nil: there is none
	colours bool
	lively  bool // the living line stands on the screen
}

// How often the living line changes, and how often plain lines say that the run is
// alive: continuous integration ends jobs that are silent.
const (
	liveEvery  = 250 * time.Millisecond
	aliveEvery = time.Minute
)

func newScreen(out io.Writer, getenv func(string) string) *screen {
	s := &screen{out: out}
	f, ok := out.(*os.File)
	if !ok {
		return s
	}
	if _, _, terminal := terminalSize(f); terminal && getenv("TERM") != "dumb" {
		s.width = func() (int, bool) {
			w, _, ok := terminalSize(f)
			return w, ok
		}
		s.colours = getenv("NO_COLOR") == ""
	}
	return s
}

// every is how often show wants to be called.
func (s *screen) every() time.Duration {
	if s.width != nil {
		return liveEvery
	}
	return aliveEvery
}

// say writes lines that stay.
func (s *screen) say(lines ...string) {
	s.clear()
	for _, l := range lines {
		fmt.Fprintln(s.out, l)
	}
}

// result says lines about a scenario, in a colour where it needs a look.
func (s *screen) result(bad bool, lines ...string) {
	if s.colours && bad {
		for i := range lines {
			lines[i] = "\x1b[31m" + lines[i] + "\x1b[0m"
		}
	}
	s.say(lines...)
}

// show shows what goes on.
func (s *screen) show(b *board, now time.Time) {
	if s.width == nil {
		s.say(b.live(now, 0))
		return
	}
	width, ok := s.width()
	if !ok || width < 20 {
		return
	}
	s.clear()
	fmt.Fprint(s.out, b.live(now, width-1))
	s.lively = true
}

func (s *screen) clear() {
	if s.lively {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.lively = false
	}
}
