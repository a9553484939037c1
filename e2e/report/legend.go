package report

import "html/template"

// sample is one entry of the legend.
type sample struct {
	class, meaning string
	width          float64
}

var stateSamples = []sample{
	{"good", "quorum / serving / healthy", 162},
	{"leader", "leader", 58},
	{"aside", "learner / parked", 108},
	{"unknown", "unknown", 74},
	{"doubt", "no leader / suspect", 128},
	{"bad", "no quorum / not serving", 152},
	{"worse", "mute / silent / unhealthy", 152},
	{"frozen", "frozen", 58},
	{"gone", "stopped", 70},
	{"blank", "no shim", 66},
}

// legend holds the patterns that every drawing uses, and the legend that stands below
// each: drawn once, used by reference.
func legend() template.HTML {
	var s svg
	s.raw(patterns, `<g id="legend">`)
	x := 0.0
	for _, e := range stateSamples {
		s.rect("s "+e.class, x, 2, 20, 11, "")
		s.text("tick start", x+24, 11, e.meaning)
		x += e.width + 6
	}
	x = 0
	for _, class := range []string{"ours", "control"} {
		s.path("c "+class, "M0 0v-6h4v-3h4v4h4v-5h4v3h4v7z", "translate("+num(x)+" 31)", "")
		s.path("st "+class, "M"+num(x)+" 24h8v-4h12", "", "")
		s.text("tick start", x+24, 29, "calls (columns) and open streams (line, with their number), "+class)
		x += 370
	}
	s.path("move", "M"+num(x+10)+" 28l-3.5 -6h7z", "", "")
	s.text("tick start", x+18, 29, "moved away")
	x += 90
	s.rect("fault", x, 20, 20, 11, "")
	s.rect("mark mf", x, 20, 1.4, 11, "")
	s.text("tick start", x+24, 29, "fault")
	x += 60
	s.rect("mended", x, 20, 20, 11, "")
	s.rect("mark mm", x, 20, 1.4, 11, "")
	s.text("tick start", x+24, 29, "mended")
	s.raw(`</g></defs></svg>`)
	return template.HTML(s.out.String()) //nolint:gosec // nothing in it comes from outside
}

// patterns are the fills of states that are not plain. It ends inside defs.
const patterns = `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="p-aside" width="5" height="5" patternUnits="userSpaceOnUse"><path fill="#d9efe7" d="M0 0h5v5H0z"/><circle cx="2.5" cy="2.5" r="1" fill="#009e73"/></pattern>
<pattern id="p-unknown" width="6" height="6" patternUnits="userSpaceOnUse"><path fill="#eceff1" d="M0 0h6v6H0z"/><circle cx="3" cy="3" r=".9" fill="#78909c"/></pattern>
<pattern id="p-doubt" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path fill="#fbf3a0" d="M0 0h8v8H0z"/><path fill="#c9b800" d="M0 0h2v8H0z"/></pattern>
<pattern id="p-bad" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path fill="#f7c873" d="M0 0h6v6H0z"/><path fill="#b86e00" d="M0 0h2.4v6H0z"/></pattern>
<pattern id="p-worse" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path fill="#f2a07a" d="M0 0h6v6H0z"/><path fill="#b33a00" d="M0 0h1.6v6H0zM0 0h6v1.6H0z"/></pattern>
<pattern id="p-frozen" width="4" height="4" patternUnits="userSpaceOnUse"><path fill="#bfe3f7" d="M0 0h4v4H0z"/><path fill="#2b7fb0" d="M0 0h1.4v4H0z"/></pattern>
<pattern id="p-mended" width="4" height="9" patternUnits="userSpaceOnUse"><path fill="#00664b" d="M0 0h4v6H0z"/></pattern>
<pattern id="p-note" width="4" height="4" patternUnits="userSpaceOnUse"><path fill="#5f6b73" d="M0 0h4v1.5H0z"/></pattern>
`
