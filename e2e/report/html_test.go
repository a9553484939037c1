package report_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// element is one element of a page, with the text directly in it.
type element struct {
	name string
	attr map[string]string
	text string
	open []string // the elements that it is in
}

func (e element) has(class string) bool {
	return slices.Contains(strings.Fields(e.attr["class"]), class)
}

// void elements have no end in HTML.
var void = []string{"meta", "link", "br", "input", "hr", "img"}

// parse reads a page more strictly than a browser would: whatever is opened must be
// closed in order.
func parse(t *testing.T, page []byte) []element {
	t.Helper()
	// Style and script are not markup.
	page = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`).ReplaceAll(page, []byte("<$1></$2>"))
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Strict, d.Entity = false, xml.HTMLEntity
	var all []element
	var stack []int
	for {
		token, err := d.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the page does not parse: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			for _, i := range stack {
				e.open = append(e.open, all[i].name)
			}
			all = append(all, e)
			if !slices.Contains(void, e.name) {
				stack = append(stack, len(all)-1)
			}
		case xml.EndElement:
			if slices.Contains(void, token.Name.Local) {
				break
			}
			if len(stack) == 0 || all[stack[len(stack)-1]].name != token.Name.Local {
				t.Fatalf("</%s> closes nothing at byte %d", token.Name.Local, d.InputOffset())
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(stack) > 0 {
				all[stack[len(stack)-1]].text += string(token)
			}
		}
	}
	if len(stack) > 0 {
		t.Fatalf("<%s> is never closed", all[stack[len(stack)-1]].name)
	}
	return all
}

func page(t *testing.T, r report.Run) (string, []element) {
	t.Helper()
	out := written(t, func(b *bytes.Buffer) error { return r.WriteHTML(b) })
	return string(out), parse(t, out)
}

func find(all []element, name, class string) []element {
	var found []element
	for _, e := range all {
		if e.name == name && (class == "" || e.has(class)) {
			found = append(found, e)
		}
	}
	return found
}

func TestPageNeedsNoNetwork(t *testing.T) {
	text, all := page(t, sampleRun(24))
	for _, e := range all {
		for name, value := range e.attr {
			switch name {
			case "href", "src", "srcset", "data", "action", "poster", "background":
				if !strings.HasPrefix(value, "#") && !strings.HasPrefix(value, "data:") && !strings.HasPrefix(value, "files/") {
					t.Errorf("<%s %s=%q> points outside", e.name, name, value)
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`url\([^)]*\)|@import|https?:|src=`).FindAllString(text, -1) {
		if !strings.HasPrefix(m, "url(#") {
			t.Errorf("%s in the page: it would ask the network", m)
		}
	}
	if !strings.Contains(text, "default-src &#39;none&#39;") && !strings.Contains(text, "default-src 'none'") {
		t.Error("the page does not forbid the browser to load anything")
	}
}

func TestPagePointsOnlyAtWhatItHolds(t *testing.T) {
	text, all := page(t, sampleRun(24))
	ids := map[string]bool{}
	for _, e := range all {
		if id := e.attr["id"]; id != "" && ids[id] {
			t.Errorf("two elements are named %q", id)
		}
		ids[e.attr["id"]] = true
	}
	for _, m := range regexp.MustCompile(`(?:url\(|href=")#([^")]+)`).FindAllStringSubmatch(text, -1) {
		if !ids[m[1]] {
			t.Errorf("%s points at nothing: a pattern or a scenario would be missing", m[0])
		}
	}
	for _, m := range regexp.MustCompile(`getElementById\('(\w+)'\)`).FindAllStringSubmatch(text, -1) {
		if !ids[m[1]] {
			t.Errorf("the script looks for %q, which is not there", m[1])
		}
	}
}

// fill puts a text into every string of a value.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			item := v.MapIndex(k)
			v.SetMapIndex(k, reflect.Value{})
			v.SetMapIndex(reflect.ValueOf(text+k.String()), item)
		}
	}
}

func TestPageEscapesEveryText(t *testing.T) {
	const evil = `"'><script>alert(1)</script><img src=x onerror=alert(2)>&lt;` + "\x00\x1b\xff"
	r := sampleRun(24)
	status := r.Scenarios[8].Status
	fill(reflect.ValueOf(&r).Elem(), evil)
	for i := range r.Scenarios {
		r.Scenarios[i].Status = status
	}
	text, all := page(t, r)
	if n := len(find(all, "script", "")); n != 1 {
		t.Errorf("%d scripts; want only our own", n)
	}
	if n := len(find(all, "img", "")); n != 0 {
		t.Errorf("%d images from texts", n)
	}
	if strings.ContainsAny(text, "\x00\x1b") {
		t.Error("control characters reach the page")
	}
	// Once a text is lost, so is the rest of the page: it must be seen as it was.
	if want := strings.ReplaceAll(strings.NewReplacer("\x00", "\uFFFD", "\x1b", "\uFFFD", "\xff", "\uFFFD").Replace(evil), "&", "&"); !slices.ContainsFunc(find(all, "li", ""), func(e element) bool { return e.text == want }) {
		t.Errorf("no violation is shown as %q", want)
	}
}

func TestPageRefusesLinksThatRun(t *testing.T) {
	r := smallRun()
	r.Scenarios[0].Files = []report.File{{Name: "log", Path: "javascript:alert(1)"}}
	text, _ := page(t, r)
	if strings.Contains(text, "javascript:") {
		t.Error("a kept file's path is a link that runs a script")
	}
}

func TestPageTellsHowEveryScenarioEnded(t *testing.T) {
	r := sampleRun(24)
	text, all := page(t, r)
	details := find(all, "details", "sc")
	if len(details) != len(r.Scenarios) {
		t.Fatalf("%d scenarios, want %d", len(details), len(r.Scenarios))
	}
	i := 0
	for _, sc := range r.Scenarios { // the suites follow each other in the sample
		_, open := details[i].attr["open"]
		if want := sc.Status == report.Failed || sc.Status == report.Broken; open != want {
			t.Errorf("%s %s: open %v; only what needs a look is open", sc.Status, sc.Name, open)
		}
		if details[i].attr["data-s"] != string(sc.Status) || !strings.Contains(details[i].attr["data-k"], sc.Name) {
			t.Errorf("%s: the filter would not find it: %v", sc.Name, details[i].attr)
		}
		i++
	}
	for _, want := range []string{"1 failed, 1 broken, 1 void of 25 scenarios", "go run ./e2e/partition run all --seed 4711", "2 cores, 24 GB", "etcd 3.7.3, quorumwise"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
}

func TestVerdictOfARun(t *testing.T) {
	for _, c := range []struct {
		statuses []report.Status
		want     string
		ok       bool
	}{
		{nil, "Nothing was played", false},
		{[]report.Status{report.Passed, report.Passed}, "All 2 scenarios passed", true},
		{[]report.Status{report.Skipped}, "1 scenario, skipped", false},
		{[]report.Status{report.Skipped, report.Skipped}, "All 2 scenarios were skipped", false},
		{[]report.Status{report.Skipped, report.Passed}, "1 passed, 1 skipped", true},
		{[]report.Status{report.Void, report.Passed}, "1 void of 2 scenarios", false},
		{[]report.Status{report.Broken, report.Passed}, "1 broken of 2 scenarios", false},
		{[]report.Status{report.Failed, report.Passed}, "1 failed of 2 scenarios", false},
	} {
		var r report.Run
		for _, s := range c.statuses {
			r.Scenarios = append(r.Scenarios, report.Scenario{Status: s})
		}
		_, all := page(t, r)
		if got := find(all, "h1", "")[0].text; got != c.want || r.OK() != c.ok {
			t.Errorf("%v: %q, OK %v; want %q, %v", c.statuses, got, r.OK(), c.want, c.ok)
		}
	}
	r := report.Run{Ended: "interrupted", Scenarios: []report.Scenario{{Status: report.Passed}, {Status: report.Skipped}}}
	if _, all := page(t, r); r.OK() || find(all, "h1", "")[0].text != "Ended early, after 2 scenarios, 1 of them passed" {
		t.Errorf("%q, OK %v: an interrupted run has not shown what it was asked for", find(all, "h1", "")[0].text, r.OK())
	}
}

func TestPageShowsTheSumsOfAFault(t *testing.T) {
	r := sampleRun(1)
	ours, control := &r.Scenarios[0].Apps[0].Figures, &r.Scenarios[0].Apps[1].Figures
	ours.LeasesLost, control.LeasesLost, ours.Avoidable, control.Avoidable = 811, 812, 813, 814
	text, _ := page(t, r)
	_, text, _ = strings.Cut(text, `<table class="faults">`)
	text, _, _ = strings.Cut(text, "</table>")
	want := `<td class="no">811</td><td class="control hit">812</td><td>813</td><td class="control">814</td>`
	if n := strings.Count(text, want); n != 2 {
		t.Errorf("%d rows have %s; want that of the fault and that of all:\n%s", n, want, text)
	}
}

func TestPageShowsTheSilenceOfEachWatch(t *testing.T) {
	r := sampleRun(1)
	r.Scenarios[0].Apps[0].Figures.Silences = report.Quantiles{N: 7, P50: ms(110), P90: ms(220), P99: ms(330), Max: ms(440)}
	text, _ := page(t, r)
	for _, want := range []string{
		`<th>silence of each watch</th><th>ours</th><td>7</td><td>0.11</td><td>0.22</td><td>0.33</td><td>0.44</td><td>-</td>`,
		`<th></th><th>control</th>` + strings.Repeat(`<td class="control">-</td>`, 6), // an older report
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not on the page", want)
		}
	}
}

func TestTwoHundredScenariosStaySmall(t *testing.T) {
	out := written(t, func(b *bytes.Buffer) error { return sampleRun(200).WriteHTML(b) })
	if got, most := len(out), 10<<20; got > most {
		t.Errorf("%d bytes; a page of 200 scenarios has to be sent and opened: at most %d", got, most)
	}
}

func TestPageShowsNoNeverAsANumber(t *testing.T) {
	for name, write := range map[string]func(*bytes.Buffer) error{
		"page":     func(b *bytes.Buffer) error { return smallRun().WriteHTML(b) },
		"JUnit":    func(b *bytes.Buffer) error { return smallRun().WriteJUnit(b) },
		"table":    func(b *bytes.Buffer) error { return report.Table(b, smallRun()) },
		"Markdown": func(b *bytes.Buffer) error { return report.Markdown(b, smallRun()) },
	} {
		out := string(written(t, write))
		for _, bad := range []string{"9223372036", "2562047h", "e+"} {
			if strings.Contains(out, bad) {
				t.Errorf("%s: %s stands for what never ended", name, bad)
			}
		}
		if !strings.Contains(out, "never") {
			t.Errorf("%s: nothing says never, and the control's watch never came back", name)
		}
	}
}

func TestMarkdownCellsCannotBreakTheTable(t *testing.T) {
	r := smallRun()
	r.Scenarios[0].Fault = "a|b\n| c <b>"
	out := string(written(t, func(b *bytes.Buffer) error { return report.Markdown(b, r) }))
	first, second, _ := strings.Cut(out, "\n\n")
	_, second, _ = strings.Cut(second, "\n\n")
	for table, want := range map[string]int{first: 13, second: 9} {
		for line := range strings.Lines(table) {
			if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != want {
				t.Errorf("%d bars in %q, want %d", n, line, want)
			}
		}
	}
	if strings.Contains(out, "<b>") {
		t.Error("markup of a name goes through")
	}
}

func TestJUnitIsXMLWhateverTheTextsHold(t *testing.T) {
	r := sampleRun(24)
	fill(reflect.ValueOf(&r).Elem(), "\x00\x01\x1b\x7f\u0085\uFFFE\xff<>&\"']]>\r\n")
	for i, s := range report.Statuses {
		r.Scenarios[i].Status = s
	}
	out := written(t, func(b *bytes.Buffer) error { return r.WriteJUnit(b) })
	var into struct {
		Suites []struct {
			Cases []struct {
				Name string `xml:"name,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out, &into); err != nil {
		t.Fatalf("%v\n%s", err, fmt.Sprintf("%.2000q", out))
	}
	if len(into.Suites) != 1 || len(into.Suites[0].Cases) != 25 {
		t.Errorf("%d suites; want one with 25 cases", len(into.Suites))
	}
	for _, r := range string(out) {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			t.Fatalf("character %U is not allowed in XML, or controls a terminal", r)
		}
	}
}
