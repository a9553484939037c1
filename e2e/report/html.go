package report

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes the page. It holds all that it shows: style, drawings and the few
// lines of script that filter the list.
func (r Run) WriteHTML(w io.Writer) error {
	return pageTemplate.Execute(w, newPage(r))
}

// page is what the template shows; all texts in it are clean.
type page struct {
	Style   template.CSS
	Script  template.JS
	Legend  template.HTML
	Title   string
	OK      bool
	Verdict string
	Counts  []count
	Facts   []fact
	Faults  []faultRow
	Left    []leftRow
	LeftIs  string
	Suites  []pageSuite
	Scale   template.HTML
}

type count struct {
	Status Status
	N      int
}

type fact struct{ Name, Value string }

// faultRow is one line of the figures per fault.
type faultRow struct {
	Fault, Counted        string
	Silence, ControlQuiet cell
	Call, ControlCall     cell
	Dots                  template.HTML
	FalseMoves            cell
	Lost, Twice           cell
	ControlLost           cell
	ControlTwice          cell
	Leases, ControlLeases cell
	Avoidable             cell
	ControlAvoidable      cell
	Violations            cell
	All                   bool
}

// leftRow is one line of how soon members were left: a cell for each column of leftColumns but
// the first two.
type leftRow struct {
	Fault     string
	Scenarios int
	Cells     []cell
	All       bool
}

// cell is a value; Bad says that somebody should look at it.
type cell struct {
	Text string
	Bad  bool
}

type pageSuite struct {
	Name      string
	Score     string
	Scenarios []pageScenario
}

type pageScenario struct {
	ID, Name, Does, Keys string
	Status               Status
	Open                 bool
	About                string // fault, members, shim, version
	Silence, Quiet       cell   // ours, the control's
	Call, ControlCall    cell
	Took                 string
	Why                  string
	Violations, Notes    []string
	Field                string
	Timeline             template.HTML
	Marks                []pageMark
	Names                []string // of the applications
	Figures              []figureRow
	Calls                []callRow
	Lateness             string
	Files                []File
	Began, Repeat        string
}

type pageMark struct{ Class, Glyph, At, Text string }

type figureRow struct {
	Name  string
	Cells []cell
}

func newPage(r Run) page {
	p := page{
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), Legend: legend(), //nolint:gosec // files of this package
		Title: "quorumwise partition suites", OK: r.OK(),
	}
	for _, s := range Statuses {
		p.Counts = append(p.Counts, count{s, r.Count(s)})
	}
	p.Verdict = r.verdict()
	p.Facts = r.facts()
	p.Faults, p.Scale = r.faultRows()
	p.Left, p.LeftIs = pageLeft(r), leftTitle
	n := 0
	for _, s := range r.suites() {
		ps := pageSuite{Name: clean(s.name), Score: score(s)}
		for _, sc := range s.scenarios {
			n++
			ps.Scenarios = append(ps.Scenarios, newPageScenario(sc, "s"+strconv.Itoa(n)))
		}
		p.Suites = append(p.Suites, ps)
	}
	return p
}

func (r Run) verdict() string {
	n := len(r.Scenarios)
	if r.Ended != "" {
		return fmt.Sprintf("Ended early, after %d scenarios, %d of them passed", n, r.Count(Passed))
	}
	switch {
	case n == 0:
		return "Nothing was played"
	case n == 1:
		return fmt.Sprintf("1 scenario, %s", r.Scenarios[0].Status)
	case r.Count(Passed) == n:
		return fmt.Sprintf("All %d scenarios passed", n)
	case r.Count(Skipped) == n:
		return fmt.Sprintf("All %d scenarios were skipped", n)
	case r.OK():
		return fmt.Sprintf("%d passed, %d skipped", r.Count(Passed), r.Count(Skipped))
	default:
		var parts []string
		for _, s := range []Status{Failed, Broken, Void} {
			if k := r.Count(s); k > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", k, s))
			}
		}
		return fmt.Sprintf("%s of %d scenarios", strings.Join(parts, ", "), n)
	}
}

func (r Run) facts() []fact {
	var versions []string
	for _, v := range r.Versions {
		versions = append(versions, v.Name+" "+v.Version)
	}
	fs := []fact{
		{"Repeat", r.Command},
		{"Ended early", r.Ended},
		{"Seed", strconv.FormatInt(r.Seed, 10)},
		{"Played", r.Began.Format("2006-01-02 15:04:05 MST") + ", " + took(r.Took)},
		{"Versions", strings.Join(versions, ", ")},
		{"Machine", r.Machine},
	}
	for i := range fs {
		fs[i].Value = clean(fs[i].Value)
	}
	return slices.DeleteFunc(fs, func(f fact) bool { return f.Value == "" })
}

func score(s suite) string {
	passed := 0
	for _, sc := range s.scenarios {
		if sc.Status == Passed {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d passed", passed, len(s.scenarios))
}

func (r Run) faultRows() (rows []faultRow, scale template.HTML) {
	groups, all := r.faults()
	ax := newLogAxis(all)
	for _, f := range append(groups, all) {
		rows = append(rows, faultRow{
			Fault: clean(f.fault), Counted: f.counted(),
			Silence: spreadCell(f.ours.silence), ControlQuiet: spreadCell(f.control.silence),
			Call: spreadCell(f.ours.call), ControlCall: spreadCell(f.control.call),
			Dots:       ax.dots(f),
			FalseMoves: f.number(f.falseMoves), Lost: f.number(f.ours.lost), Twice: f.number(f.ours.twice),
			ControlLost: f.number(f.control.lost), ControlTwice: f.number(f.control.twice),
			Leases: f.number(f.ours.leases), ControlLeases: f.number(f.control.leases),
			Avoidable: f.expected(f.ours.avoidable), ControlAvoidable: f.expected(f.control.avoidable),
			Violations: f.number(f.violations),
		})
	}
	if len(rows) > 0 {
		rows[len(rows)-1].All = true
	}
	return rows, ax.scale()
}

// number is not 0 where nothing was counted.
func (f faultFigures) number(n int) cell {
	if f.scenarios == 0 {
		return cell{Text: "-"}
	}
	return bad(n)
}

// expected is a number of what every fault costs some of.
func (f faultFigures) expected(n int) cell { return cell{Text: f.number(n).Text} }

func spreadCell(s spread) cell {
	return cell{s.String(), len(s) > 0 && s.worst() == Never}
}

func bad(n int) cell { return cell{strconv.Itoa(n), n > 0} }

func newPageScenario(sc Scenario, id string) pageScenario {
	ps := pageScenario{
		ID: id, Name: clean(sc.Name), Does: clean(sc.Does), Status: sc.Status,
		Open:  sc.Status == Failed || sc.Status == Broken,
		About: clean(sc.about()), Took: took(sc.Took), Why: clean(sc.Why()),
		Violations: cleanAll(sc.Violations), Notes: cleanAll(sc.Notes), Field: clean(strings.Join(sc.Field, " ")),
		Timeline: drawTimeline(sc), Began: sc.Began.Format("15:04:05"), Repeat: clean(sc.Command),
	}
	ps.Keys = strings.ToLower(strings.Join([]string{ps.Name, clean(sc.Suite), clean(sc.faultName()), ps.About, ps.Field, string(sc.Status), ps.Does}, " "))
	ps.Silence, ps.Call = summary(sc.ours())
	ps.Quiet, ps.ControlCall = summary(sc.control())
	for _, m := range sc.Marks {
		ps.Marks = append(ps.Marks, pageMark{markClass(m.Kind), markGlyph(m.Kind), Shown(m.At), clean(m.Text)})
	}
	ps.Names, ps.Figures, ps.Calls = sc.figureRows()
	if sc.Lateness.Worst > 0 {
		ps.Lateness = fmt.Sprintf("the machine woke a sleeping goroutine %s late as a rule, %s at worst", Shown(sc.Lateness.Typical), Shown(sc.Lateness.Worst))
	}
	for _, f := range sc.Files {
		ps.Files = append(ps.Files, File{clean(f.Name), clean(f.Path)})
	}
	return ps
}

func cleanAll(texts []string) []string {
	all := make([]string, len(texts))
	for i, s := range texts {
		all[i] = clean(s)
	}
	return all
}

// about is what distinguishes a scenario from others with the same fault.
func (sc Scenario) about() string {
	var parts []string
	if sc.Members > 0 {
		parts = append(parts, fmt.Sprintf("%d members", sc.Members))
	}
	if sc.Target != "" {
		parts = append(parts, sc.Target)
	}
	switch sc.Shim {
	case "":
	case "none":
		parts = append(parts, "no shim")
	default:
		parts = append(parts, sc.Shim)
	}
	if sc.Version != "" {
		parts = append(parts, "etcd "+sc.Version)
	}
	return strings.Join(parts, ", ")
}

func summary(a App, ok bool) (silence, call cell) {
	if !ok {
		return cell{Text: "-"}, cell{Text: "-"}
	}
	call = cell{Text: "-"}
	if a.Figures.calls() > 0 {
		call = duration(a.Figures.slowest())
	}
	return duration(a.Figures.Silence), call
}

func duration(d time.Duration) cell { return cell{Shown(d), d == Never} }
