package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// tone is how a word is meant. Every word is also readable without its colour.
type tone int

const (
	plain tone = iota
	good
	warn
	bad
	faint
	strong
)

// code is the tone's ANSI graphic rendition, "" for none.
func (t tone) code() string {
	switch t {
	case good:
		return "32"
	case warn:
		return "33"
	case bad:
		return "1;31"
	case faint:
		return "2"
	case strong:
		return "1"
	default:
		return ""
	}
}

// word is a piece of text with its tone. It has no newline; one rune is one column.
type word struct {
	text string
	tone tone
}

// line is one line of words.
type line []word

// text is the line without colours, at most width columns; 0 is no limit.
func (l line) text(width int) string { return l.write(width, false) }

// write renders the line. What does not fit ends in an ellipsis.
func (l line) write(width int, colour bool) string {
	var b strings.Builder
	for _, w := range l.fit(width) {
		code := w.tone.code()
		if !colour || code == "" {
			b.WriteString(w.text)
			continue
		}
		fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m", code, w.text)
	}
	return b.String()
}

func (l line) width() int {
	n := 0
	for _, w := range l {
		n += utf8.RuneCountInString(w.text)
	}
	return n
}

// fit cuts the line to width.
func (l line) fit(width int) line {
	if width <= 0 || l.width() <= width {
		return l
	}
	left := width - 1 // the ellipsis
	var out line
	for _, w := range l {
		runes := []rune(w.text)
		if len(runes) > left {
			return append(out, word{strings.TrimRight(string(runes[:left]), " ") + "…", w.tone})
		}
		left -= len(runes)
		out = append(out, w)
	}
	return out
}

// wrap breaks the line at blanks, so that nothing is lost on a narrow screen.
func (l line) wrap(width int) []line {
	if width <= 0 || l.width() <= width {
		return []line{l}
	}
	var lines []line
	var now line
	for _, w := range l {
		for piece := range strings.SplitAfterSeq(w.text, " ") {
			if now.width()+utf8.RuneCountInString(strings.TrimRight(piece, " ")) > width && len(now) > 0 {
				lines = append(lines, now.trimmed())
				now = nil
			}
			now = append(now, word{piece, w.tone})
		}
	}
	return append(lines, now.trimmed())
}

// trimmed is the line without the blanks at its end.
func (l line) trimmed() line {
	for n := len(l); n > 0; n-- {
		l[n-1].text = strings.TrimRight(l[n-1].text, " ")
		if l[n-1].text != "" {
			return l[:n]
		}
	}
	return nil
}

// sentence is a line of one word.
func sentence(t tone, format string, args ...any) line {
	return line{{fmt.Sprintf(format, args...), t}}
}

// seconds prints a duration for people.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// count prints a number with its noun.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return fmt.Sprintf("%d %ses", n, noun)
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}
