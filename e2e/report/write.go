package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// What Write leaves in its directory.
const (
	PageName  = "index.html"
	JSONName  = "results.json"
	JUnitName = "junit.xml"
	// FilesName is the directory in it for what scenarios keep.
	FilesName = "files"
)

// Write writes the report into dir: the page, the JSON and the JUnit XML. What the
// scenarios have kept stays where it is; a [File.Path] inside dir is written relative to
// it, so that the directory can be moved.
func Write(dir string, r Run) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	r = r.within(dir)
	return errors.Join(
		writeFile(filepath.Join(dir, PageName), r.WriteHTML),
		writeFile(filepath.Join(dir, JSONName), r.WriteJSON),
		writeFile(filepath.Join(dir, JUnitName), r.WriteJUnit),
	)
}

// writeFile puts a file in place as a whole: a reader never sees half a report.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("report: %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

// within is the run with paths relative to dir where they are in it. r stays as it is.
func (r Run) within(dir string) Run {
	root, err := filepath.Abs(dir)
	if err != nil {
		return r
	}
	r.Scenarios = slices.Clone(r.Scenarios)
	for i := range r.Scenarios {
		files := slices.Clone(r.Scenarios[i].Files)
		for j, f := range files {
			if rel, err := filepath.Rel(root, f.Path); err == nil && filepath.IsAbs(f.Path) && filepath.IsLocal(rel) {
				files[j].Path = filepath.ToSlash(rel)
			}
		}
		r.Scenarios[i].Files = files
	}
	return r
}
