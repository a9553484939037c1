package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorumwise/quorumwise/e2e/report"
)

// differ says in what two runs differ. Most do not, and looking for it takes long.
func differ(a, b report.Run) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b, cmpopts.EquateEmpty())
}

func TestReadJSONGivesBackWhatWasWritten(t *testing.T) {
	r := sampleRun(24)
	r.Scenarios[0].Took = 1234567891234567891 // nanoseconds that a float would lose
	r.Scenarios[1].Took = math.MinInt64
	r.Scenarios[2].Took = -time.Nanosecond
	r.Scenarios[10].Reason = "an escape \x1b and a nul \x00" // what was no UTF-8 cannot come back
	got, err := report.ReadJSON(bytes.NewReader(written(t, func(b *bytes.Buffer) error { return r.WriteJSON(b) })))
	if err != nil {
		t.Fatal(err)
	}
	if diff := differ(r, got); diff != "" {
		t.Errorf("tables are made from the file, so it must hold all (-want +got):\n%s", diff)
	}
}

func TestJSONSaysNever(t *testing.T) {
	out := written(t, func(b *bytes.Buffer) error { return smallRun().WriteJSON(b) })
	if !json.Valid(out) {
		t.Fatalf("not JSON:\n%s", out)
	}
	if bytes.Contains(out, []byte("9223372036")) {
		t.Error("what never ended is written as a number, which a reader would take for a duration")
	}
	if !bytes.Contains(out, []byte(`"silence":"never"`)) {
		t.Error("the control's silence never ended, and is not written so")
	}
}

func TestReadJSONSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no JSON", "<html>", "not a report in JSON"},
		{"nothing", "", "not a report in JSON"},
		{"another thing", "[1]", "run is [1]; it must be an object"},
		{"a number of nanoseconds that is none", `{"took":"soon"}`, `run.took is soon; it must be seconds or "never"`},
		{"an exponent", `{"took":1e400}`, `run.took is 1e400; it must be seconds or "never"`},
		{"a fraction", `{"seed":1.5}`, "run.seed is 1.5; it must be a whole number"},
		{"a text for a list", `{"scenarios":"all"}`, "run.scenarios is all; it must be an array"},
		{"half a point", `{"scenarios":[{"apps":[{"members":[{"calls":[[1]]}]}]}]}`, "run.scenarios[0].apps[0].members[0].calls[0] is [1]; it must be a pair of seconds and number"},
		{"a day", `{"began":"yesterday"}`, "run.began is yesterday; it must be a time"},
		{"a truth", `{"scenarios":[{"apps":[{"official":1}]}]}`, "run.scenarios[0].apps[0].official is 1; it must be true or false"},
		{"figures", `{"scenarios":[{"apps":[{"figures":{"failed":[]}}]}]}`, "run.scenarios[0].apps[0].figures.failed is []; it must be an object"},
		{"a name", `{"command":7}`, "run.command is 7; it must be a text"},
	} {
		_, err := report.ReadJSON(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", c.name, err, c.want)
		}
	}
}

func TestReadJSONPassesOverWhatItDoesNotKnow(t *testing.T) {
	r, err := report.ReadJSON(strings.NewReader(`{"seed":3,"weather":["rain"],"scenarios":[{"name":"x","colour":{"a":1}}]}`))
	if err != nil || r.Seed != 3 || len(r.Scenarios) != 1 || r.Scenarios[0].Name != "x" {
		t.Errorf("%+v, %v; a file of a newer version must be readable", r, err)
	}
}

func FuzzReadJSON(f *testing.F) {
	var b bytes.Buffer
	if err := smallRun().WriteJSON(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add(`{"took":-0.000000001,"scenarios":[{"apps":[{"members":[{"calls":[[0.1,3]]}]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := report.ReadJSON(strings.NewReader(text))
		if err != nil {
			return
		}
		// What was read can be shown in every form.
		for _, write := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return r.WriteHTML(b) },
			func(b *bytes.Buffer) error { return r.WriteJUnit(b) },
			func(b *bytes.Buffer) error { return report.Table(b, r) },
			func(b *bytes.Buffer) error { return report.Markdown(b, r) },
		} {
			if err := write(new(bytes.Buffer)); err != nil {
				t.Fatal(err)
			}
		}
		again, err := report.ReadJSON(bytes.NewReader(written(t, func(b *bytes.Buffer) error { return r.WriteJSON(b) })))
		if err != nil {
			t.Fatal(err)
		}
		if diff := differ(r, again); diff != "" {
			t.Errorf("read, written and read again it is another (-first +second):\n%s", diff)
		}
	})
}
