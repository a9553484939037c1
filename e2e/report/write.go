package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// What Write leaves in its directory.
const (
	PageName  = "index.html"
	JSONName  = "results.json"
	JUnitName = "junit.xml"
)

// Write writes the report into dir: the page, the JSON and the JUnit XML. What the
// scenarios have kept stays where it is: [File.Path] is relative to dir, or absolute.
func Write(dir string, r Run) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
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
