//go:build linux

package suites

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/history"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
)

// disordered has ours read what was not there any more: no order of its history is correct.
func disordered() *Evidence {
	e := sound()
	op := history.Op{ID: "stale", Caller: 1, Group: "late", Kind: history.Get, Keys: []string{"late"}, Call: 3 * time.Second, Return: 4 * time.Second, Outcome: history.Done, Revision: 9, Found: []string{"never"}}
	e.Ours.Histories = []history.Op{op}
	return e
}

// madeUp is a play of the made-up scenario that keeps its evidence in a new directory.
func madeUp(t *testing.T) *play {
	return &play{sc: Scenario{Name: "made-up"}, opts: Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}}
}

// contents reads what a report says is kept.
func contents(t *testing.T, files []report.File) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, f := range files {
		text, err := os.ReadFile(f.Path)
		if err != nil {
			t.Error(err)
		}
		texts[f.Name] = string(text)
	}
	return texts
}

// What this machine cannot have is no failure: the reason says what is missing, and the way out.
func TestScenarioThatThisMachineCannotPlayIsSkippedWithTheReason(t *testing.T) {
	none := &nethosts.UnavailableError{What: "a disk of a host's own", Why: "mkfs.ext4 is missing: install the package e2fsprogs"}
	for _, row := range []struct {
		err    error
		status report.Status
		reason string
	}{
		{none, report.Skipped, none.Error()},
		{fmt.Errorf("realetcd: disk of m1: %w", errors.Join(none, nil)), report.Skipped, none.Error()},
		{errors.New("the port is taken"), report.Broken, "the port is taken"},
	} {
		r, luck := madeUp(t).outcome(report.Scenario{Name: "made-up"}, nil, row.err)
		if r.Status != row.status || r.Reason != row.reason || r.Name != "made-up" || luck {
			t.Errorf("%v: %s (%s), by luck %v; want %s (%s)", row.err, r.Status, r.Reason, luck, row.status, row.reason)
		}
	}
}

func TestHistoryWithoutAnOrderIsKeptAsADrawing(t *testing.T) {
	p := madeUp(t)
	r, _ := p.outcome(report.Scenario{}, disordered(), nil)
	texts := contents(t, r.Files)
	if r.Status != report.Failed || len(texts) != 1 || !strings.Contains(texts["history.html"], "<html") {
		t.Errorf("%s (%q), kept %q; want failed with a drawing of the history", r.Status, r.Violations, slices.Sorted(maps.Keys(texts)))
	}
	for _, f := range r.Files {
		if want := filepath.Join(p.opts.Dir, "made-up", f.Name); f.Path != want {
			t.Errorf("%s is kept at %s; want %s", f.Name, f.Path, want)
		}
	}
	if r, _ := p.outcome(report.Scenario{}, sound(), nil); r.Status != report.Passed || len(r.Files) > 0 {
		t.Errorf("%s, kept %v; want passed with nothing to keep", r.Status, r.Files)
	}
	p.opts.Dir = ""
	if r, _ := p.outcome(report.Scenario{}, disordered(), nil); r.Status != report.Failed || len(r.Files) > 0 {
		t.Errorf("%s, kept %v; want failed, and nothing kept for there is nowhere", r.Status, r.Files)
	}
}

// One log that is gone must not cost the others.
func TestLogsAreKeptNextToTheReport(t *testing.T) {
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "files", "made-up")
	var logs []report.File
	for _, name := range []string{"app-ours.log", "m1-etcd.log", "m1-shim.log"} {
		path := filepath.Join(from, "log-"+name)
		if err := os.WriteFile(path, []byte("of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		logs = append(logs, report.File{Name: name, Path: path})
	}
	logs = slices.Insert(logs, 1, report.File{Name: "m2-etcd.log", Path: filepath.Join(from, "gone")})
	var lost strings.Builder
	files := keep(dir, nil, logs, slog.New(slog.NewTextHandler(&lost, nil)))
	want := map[string]string{"app-ours.log": "of app-ours.log", "m1-etcd.log": "of m1-etcd.log", "m1-shim.log": "of m1-shim.log"}
	if got := contents(t, files); !maps.Equal(got, want) {
		t.Errorf("kept %q; want %q", got, want)
	}
	for _, f := range files {
		if filepath.Dir(f.Path) != dir {
			t.Errorf("%s is kept at %s; want it in %s, for the original goes with its host", f.Name, f.Path, dir)
		}
	}
	if !strings.Contains(lost.String(), "m2-etcd.log") {
		t.Errorf("logged %q; want that the log of m2 is lost", lost.String())
	}
}

// On real hosts: what members, shims and applications logged outlives them.
func TestScenarioThatCannotGoOnKeepsItsLogs(t *testing.T) {
	nethosts.Need(t)
	mistake := errors.New("a mistake of the harness")
	sc := Scenario{Name: "made-up", Suite: "made-up", Does: "breaks", Shim: realetcd.ShimSidecar, Steps: []Step{{Text: "break", Do: func(context.Context, *Stage) error { return mistake }}}}
	r, err := Run(t.Context(), sc, Options{Seed: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != report.Broken || !strings.Contains(r.Reason, mistake.Error()) {
		t.Errorf("%s (%s); want broken by %q", r.Status, r.Reason, mistake)
	}
	texts := contents(t, r.Files)
	for _, m := range []string{"m1", "m2", "m3"} {
		if log := texts[m+"-etcd.log"]; !strings.Contains(log, m) {
			t.Errorf("the log of etcd on %s has %d bytes and does not name it; kept are %q", m, len(log), slices.Sorted(maps.Keys(texts)))
		}
	}
}

// On real hosts: where no file system can be made, members have no disks, and no scenario
// that needs them fails.
func TestScenarioWhoseDisksCannotBeHadIsSkipped(t *testing.T) {
	nethosts.Need(t)
	t.Setenv("PATH", t.TempDir()) // ip and nft are found all the same
	sc := Scenario{Name: "made-up", Suite: "made-up", Does: "needs disks", Shim: realetcd.ShimInProcess, Cluster: onDisks, Steps: []Step{{Text: "nothing"}}}
	r, err := Run(t.Context(), sc, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != report.Skipped || !strings.Contains(r.Reason, "mkfs.ext4 is missing: install the package e2fsprogs") {
		t.Errorf("%s (%s); want skipped, with what is missing and the way out", r.Status, r.Reason)
	}
}
