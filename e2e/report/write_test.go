package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestReportIsADirectoryThatCanBeMoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "on demand")
	r := smallRun()
	outside := filepath.Join(t.TempDir(), "m1.log")
	r.Scenarios[0].Files = []report.File{
		{Name: "inside", Path: filepath.Join(dir, report.FilesName, "x y", "m2.log")},
		{Name: "outside", Path: outside},
		{Name: "relative", Path: "files/m3.log"},
	}
	for range 2 { // a second time it replaces the first
		if err := report.Write(dir, r); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v; want the page, JSON and JUnit, and nothing half written", entries, err)
	}
	f, err := os.Open(filepath.Join(dir, report.JSONName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := report.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"files/x y/m2.log", outside, "files/m3.log"} {
		if path := got.Scenarios[0].Files[i].Path; path != want {
			t.Errorf("path %q, want %q", path, want)
		}
	}
	if r.Scenarios[0].Files[0].Path == "files/x y/m2.log" {
		t.Error("the caller's run was changed")
	}
}

func TestReportThatCannotBeWrittenSaysWhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := report.Write(file, smallRun()); err == nil {
		t.Error("no error, and there is no report")
	}
}
