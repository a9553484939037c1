package report

import "io"

// WriteHTML writes the page.
func (r Run) WriteHTML(w io.Writer) error { return nil }
