package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// WriteJUnit writes the run as JUnit XML, one test suite for each of ours. Failed and
// void scenarios are failures, broken ones errors.
func (r Run) WriteJUnit(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(r.junit()); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

type junitRun struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitSums
	Suites []*junitSuite `xml:"testsuite"`
}

// junitSums stand on the whole and on each suite.
type junitSums struct {
	Tests     int    `xml:"tests,attr"`
	Failures  int    `xml:"failures,attr"`
	Errors    int    `xml:"errors,attr"`
	Skipped   int    `xml:"skipped,attr"`
	Time      string `xml:"time,attr"`
	Timestamp string `xml:"timestamp,attr"`
	took      time.Duration
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitSums
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitResult `xml:"failure"`
	Error   *junitResult `xml:"error"`
	Skipped *junitResult `xml:"skipped"`
	Out     string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func (r Run) junit() junitRun {
	whole := junitRun{Name: "quorumwise partition suites"}
	whole.Timestamp = r.Began.UTC().Format(time.RFC3339)
	for _, s := range r.suites() {
		suite := &junitSuite{Name: clean(s.name), Properties: r.properties()}
		suite.Timestamp = s.scenarios[0].Began.UTC().Format(time.RFC3339)
		for _, sc := range s.scenarios {
			suite.Cases = append(suite.Cases, sc.junit())
			suite.add(sc)
			whole.add(sc)
		}
		whole.Suites = append(whole.Suites, suite)
	}
	whole.took = r.Took // scenarios may be played at the same time
	whole.Time = decimal(whole.took)
	return whole
}

func (s *junitSums) add(sc Scenario) {
	s.Tests++
	switch sc.Status {
	case Failed, Void:
		s.Failures++
	case Broken:
		s.Errors++
	case Skipped:
		s.Skipped++
	case Passed:
	default: // of a file that is newer than this
		s.Errors++
	}
	s.took += sc.Took
	s.Time = decimal(s.took)
}

func (r Run) properties() []junitProperty {
	ps := []junitProperty{
		{"seed", strconv.FormatInt(r.Seed, 10)},
		{"command", clean(r.Command)},
		{"machine", clean(r.Machine)},
	}
	for _, v := range r.Versions {
		ps = append(ps, junitProperty{clean("version of " + v.Name), clean(v.Version)})
	}
	return ps
}

func (sc Scenario) junit() junitCase {
	c := junitCase{Class: "quorumwise." + clean(sc.Suite), Name: clean(sc.Name), Time: decimal(sc.Took), Out: clean(sc.prose())}
	message := clean(sc.Why())
	switch sc.Status {
	case Failed:
		c.Failure = &junitResult{message, "violation", clean(strings.Join(sc.Violations, "\n"))}
	case Void:
		c.Failure = &junitResult{Message: message, Type: "void"}
	case Broken:
		c.Error = &junitResult{Message: message, Type: "broken"}
	case Skipped:
		c.Skipped = &junitResult{Message: message}
	case Passed:
	default:
		c.Error = &junitResult{Message: message, Type: clean(string(sc.Status))}
	}
	return c
}

// prose is the scenario in lines of text: what a reader of a log needs.
func (sc Scenario) prose() string {
	lines := []string{sc.Does}
	for _, a := range sc.Apps {
		f := a.Figures
		lines = append(lines, fmt.Sprintf("%s: silence %s, slowest call %s, %d failed, %d unknown, %d of %d leases lost",
			a.Name, Shown(f.Silence), Shown(f.slowest()), f.failed(), f.Unknown, f.LeasesLost, f.Leases))
	}
	if sc.Command != "" {
		lines = append(lines, "repeat: "+sc.Command)
	}
	for _, n := range sc.Notes {
		lines = append(lines, "note: "+n)
	}
	for _, f := range sc.Files {
		lines = append(lines, "kept: "+f.Name+": "+f.Path)
	}
	return strings.Join(lines, "\n")
}

func decimal(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
