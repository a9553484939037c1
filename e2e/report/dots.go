package report

import (
	"fmt"
	"html/template"
	"math"
	"time"
)

// logAxis is the axis of the small drawings in the table of figures: one dot for the
// longest silence of each scenario. It is logarithmic, because what is compared differs
// by factors.
type logAxis struct {
	from, to float64 // decimal logarithms of seconds
}

const (
	dotsWidth  = 220.0
	dotsHeight = 26.0
	dotsNever  = 16.0 // kept at the right for what never ended
)

func newLogAxis(all faultFigures) logAxis {
	ax := logAxis{from: -2, to: 1}
	for _, s := range []spread{all.ours.silence, all.control.silence} {
		for _, d := range s {
			if d != Never && d > 0 {
				ax.to = max(ax.to, math.Ceil(math.Log10(d.Seconds())*2)/2)
			}
		}
	}
	return ax
}

func (ax logAxis) x(d time.Duration) float64 {
	if d == Never {
		return dotsWidth - 6
	}
	at := math.Log10(max(d.Seconds(), 1e-9))
	part := min(max((at-ax.from)/(ax.to-ax.from), 0), 1)
	return 12 + part*(dotsWidth-18-dotsNever)
}

// dots draws ours above the control's: circles and diamonds.
func (ax logAxis) dots(f faultFigures) template.HTML {
	var s svg
	s.raw(fmt.Sprintf(`<svg class="dots" viewBox="0 0 %s %s" width="%[1]s" height="%[2]s" role="img" aria-label="`, num(dotsWidth), num(dotsHeight)),
		escape("longest silences with "+f.fault), `">`)
	for decade := ax.from; decade <= ax.to; decade++ {
		d := time.Duration(math.Pow(10, decade) * float64(time.Second))
		s.line("grid", ax.x(d), 0, ax.x(d), dotsHeight)
	}
	for _, d := range distinct(f.ours.silence) {
		s.raw(`<circle class="ours" cx="`, num(ax.x(d)), `" cy="7" r="3.2"`)
		s.end("circle", "ours: "+Shown(d))
	}
	for _, d := range distinct(f.control.silence) {
		s.path("control", fmt.Sprintf("M%s 15l4 4-4 4-4-4z", num(ax.x(d))), "", "official client: "+Shown(d))
	}
	s.raw(`</svg>`)
	return template.HTML(s.out.String()) //nolint:gosec // svg escapes every text
}

// scale names the decades, for the head of the column.
func (ax logAxis) scale() template.HTML {
	var s svg
	s.raw(fmt.Sprintf(`<svg class="dots" viewBox="0 0 %s 12" width="%[1]s" height="12" role="img" aria-label="seconds">`, num(dotsWidth)))
	for decade := ax.from; decade <= ax.to; decade++ {
		v := math.Pow(10, decade)
		s.text("tick", ax.x(time.Duration(v*float64(time.Second))), 10, fmt.Sprint(v))
	}
	s.text("tick", ax.x(Never), 10, "∞")
	s.raw(`</svg>`)
	return template.HTML(s.out.String()) //nolint:gosec // svg escapes every text
}

// distinct leaves out what would be drawn in the same place. s is in order.
func distinct(s spread) spread {
	var all spread
	for _, d := range s {
		if n := len(all); n == 0 || d == Never && all[n-1] != Never || d != Never && float64(d) > 1.03*float64(all[n-1]) {
			all = append(all, d)
		}
	}
	return all
}
