package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// statusEvery is how often a line of figures stands among plain lines.
const statusEvery = time.Second

// display puts lines on the output: plain ones, or a screen that is drawn over
// itself. Its methods may be called concurrently.
type display struct {
	w      io.Writer
	colour bool
	size   func() (width, height int) // 0: no limit

	broken context.CancelCauseFunc // told when nothing more can be written; may be nil

	screen bool // there is one to draw on; else plain lines

	mu     sync.Mutex
	live   bool // the screen is drawn; else plain lines
	story  []event
	drawn  int // lines of the screen above the cursor
	wide   int // at the last drawing
	status time.Duration
}

// newDisplay chooses what fits the output and the environment.
func newDisplay(out *os.File, env func(string) string, verbose bool) *display {
	width, height, terminal := terminalSize(out)
	d := &display{w: out, size: func() (int, int) { return 0, 0 }}
	if !terminal || env("TERM") == "dumb" {
		return d
	}
	d.colour = env("NO_COLOR") == ""
	// A screen that does not fit cannot be drawn over itself.
	d.screen = !verbose && width >= 40 && height >= 18
	d.live = d.screen
	if d.live {
		d.size = func() (int, int) { w, h, _ := terminalSize(out); return w, h }
	}
	return d
}

// say prints a line that stays, broken where the terminal ends.
func (d *display) say(l line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	width, _ := d.size()
	for _, part := range l.wrap(width) {
		d.write(part.write(width, d.colour) + "\n")
	}
}

// columns is the width of the terminal, 0 if there is none.
func (d *display) columns() int {
	width, _ := d.size()
	return width
}

// show shows a picture and what is new. The screen follows every picture.
func (d *display) show(p picture, fresh []event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live {
		d.story = append(d.story, fresh...)
		d.draw(p)
		return
	}
	for _, e := range fresh {
		d.write(e.lines(0)[0].write(0, d.colour) + "\n")
	}
	if p.at >= d.status {
		d.status += statusEvery
		d.write(statusLine(p).write(0, d.colour) + "\n")
	}
}

// draw goes back to the first line of the screen and writes every line over the old
// one, so that nothing flickers.
func (d *display) draw(p picture) {
	width, height := d.size()
	var b strings.Builder
	switch {
	case d.drawn == 0:
		b.WriteString(hideCursor)
	case width != d.wide: // the terminal has wrapped what stood there
		b.WriteString(clearScreen)
	default:
		fmt.Fprintf(&b, "\x1b[%dA", d.drawn)
	}
	lines := screen(p, d.story, width, height)
	for _, l := range lines {
		b.WriteString(clearLine + l.write(width, d.colour) + "\n")
	}
	b.WriteString(clearBelow)
	d.drawn, d.wide = len(lines), width
	d.write(b.String())
}

func (d *display) write(text string) {
	if _, err := io.WriteString(d.w, text); err != nil && d.broken != nil {
		d.broken(fmt.Errorf("show the demonstration: %w", err))
	}
}

// leave ends the screen. What it showed last stays.
func (d *display) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live && d.drawn > 0 {
		d.write(showCursor + "\n")
	}
	d.live = false
}

// restart begins another story below what stands there.
func (d *display) restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live, d.story, d.drawn, d.status = d.screen, nil, 0, 0
}

const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	clearLine   = "\x1b[2K\r"
	clearBelow  = "\x1b[J"
	clearScreen = "\x1b[H\x1b[2J"
)

// logWriter prints log lines among the others.
type logWriter struct{ show *display }

// Write implements io.Writer. Handlers of slog write one line at a time.
func (w logWriter) Write(b []byte) (int, error) {
	w.show.say(sentence(faint, "        log %s", strings.TrimRight(string(b), "\n")))
	return len(b), nil
}
