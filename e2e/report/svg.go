package report

import (
	"html"
	"math"
	"strconv"
	"strings"
)

// svg builds a drawing. Names of classes come from this package; every other text is
// escaped.
type svg struct{ out strings.Builder }

func (s *svg) rect(class string, x, y, w, h float64, title string) {
	s.raw(`<rect class="`, class, `" x="`, num(x), `" y="`, num(y), `" width="`, num(w), `" height="`, num(h), `"`)
	s.end("rect", title)
}

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	s.raw(`<line class="`, class, `" x1="`, num(x1), `" y1="`, num(y1), `" x2="`, num(x2), `" y2="`, num(y2), `"/>`)
}

// path draws d; transform may be empty.
func (s *svg) path(class, d, transform, title string) {
	s.raw(`<path class="`, class, `" d="`, d, `"`)
	if transform != "" {
		s.raw(` transform="`, transform, `"`)
	}
	s.end("path", title)
}

func (s *svg) text(class string, x, y float64, text string) {
	s.raw(`<text class="`, class, `" x="`, num(x), `" y="`, num(y), `">`, escape(text), `</text>`)
}

func (s *svg) end(element, title string) {
	if title == "" {
		s.raw(`/>`)
		return
	}
	s.raw(`><title>`, escape(title), `</title></`, element, `>`)
}

func (s *svg) raw(parts ...string) {
	for _, p := range parts {
		s.out.WriteString(p)
	}
}

func escape(s string) string { return html.EscapeString(clean(s)) }

// num keeps a tenth of a pixel: more is not seen, and there are thousands of numbers.
func num(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }
