package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesGetPlainLines(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := newDisplay(f, func(string) string { return "" }, false)
	for _, at := range []int{100, 200, 1000, 1100, 2000} {
		p := cutPicture()
		p.at = ms(at)
		d.show(p, nil)
	}
	d.show(cutPicture(), cutStory())
	d.leave()
	d.say(sentence(bad, "over"))
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(got, '\x1b') {
		t.Errorf("escape codes in a file: %q", got)
	}
	if n := strings.Count(string(got), "Gets/s"); n != 8 {
		t.Errorf("%d status lines of two clients; want one a second (at 0.1, 1, 2 and 8 s):\n%s", n/2, got)
	}
	if !strings.Contains(string(got), "silent for 5.0 s\n") || !strings.HasSuffix(string(got), "over\n") {
		t.Errorf("the story or the last line is missing:\n%s", got)
	}
}

// screenOf is a screen of a size that tests may change.
func screenOf(width, height *int) (*display, *bytes.Buffer) {
	out := new(bytes.Buffer)
	return &display{w: out, screen: true, live: true, size: func() (int, int) { return *width, *height }}, out
}

func TestScreenIsDrawnOverItself(t *testing.T) {
	width, height := 80, 24
	d, out := screenOf(&width, &height)
	d.show(cutPicture(), cutStory()[:1])
	first := strings.Count(out.String(), "\n")
	if !strings.HasPrefix(out.String(), hideCursor) {
		t.Errorf("the first picture begins with %.20q; want the cursor hidden", out)
	}
	out.Reset()
	d.show(cutPicture(), nil)
	if want := "\x1b[13A"; first != 13 || !strings.HasPrefix(out.String(), want) {
		t.Errorf("after %d lines the second picture begins with %.20q; want to go up as many", first, out)
	}
	out.Reset()
	width = 60
	d.show(cutPicture(), nil)
	if !strings.HasPrefix(out.String(), clearScreen) {
		t.Errorf("after a change of width it begins with %.20q; want a clear screen: the terminal has wrapped the old lines", out)
	}
	out.Reset()
	d.leave()
	d.leave()
	if got := out.String(); got != showCursor+"\n" {
		t.Errorf("leaving writes %q; want the cursor back, once", got)
	}
}

// What is played again is shown as it was the first time, below what stands there.
func TestDisplayBeginsAgain(t *testing.T) {
	width, height := 80, 24
	d, out := screenOf(&width, &height)
	d.show(cutPicture(), cutStory())
	d.leave()
	out.Reset()
	d.restart()
	d.show(cutPicture(), nil)
	if !strings.HasPrefix(out.String(), hideCursor) || strings.Contains(out.String(), "silent for 5.0 s") {
		t.Errorf("the second time:\n%q\nwant a new screen, without the old story", out)
	}
	plain, lines := plainDisplay()
	plain.show(cutPicture(), nil) // its end
	plain.leave()
	lines.Reset()
	plain.restart()
	begin := cutPicture()
	begin.at = ms(100)
	plain.show(begin, nil)
	if !strings.Contains(lines.String(), "Gets/s") || strings.ContainsRune(lines.String(), '\x1b') {
		t.Errorf("the second time it begins with %q; want the figures, in plain lines", lines)
	}
}

// failing is an output whose reader has left.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestReaderThatLeavesEndsTheDemonstration(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	d := &display{w: failing{}, size: func() (int, int) { return 0, 0 }, broken: cancel}
	d.say(sentence(plain, "hello"))
	if !errors.Is(context.Cause(ctx), os.ErrClosed) {
		t.Errorf("cause %v; want the failed write", context.Cause(ctx))
	}
}
