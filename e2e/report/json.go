package report

import "io"

// WriteJSON writes the run as JSON. [ReadJSON] reads it.
func (r Run) WriteJSON(w io.Writer) error { return nil }

// ReadJSON reads what [Run.WriteJSON] has written.
func ReadJSON(from io.Reader) (Run, error) { return Run{}, nil }
