//go:build linux

package app

import "time"

// verb is what a command asks the process to do.
type verb string

const (
	setEndpoints verb = "endpoints"
	stepClock    verb = "step-clock"
	stop         verb = "stop"
)

// command is one line to the process.
type command struct {
	Seq           int
	Do            verb
	Endpoints     []string          `json:",omitempty"`
	ShimAddresses map[string]string `json:",omitempty"`
	Step          time.Duration     `json:",omitempty"`
	Upto          int64             `json:",omitempty"`
	Within        time.Duration     `json:",omitempty"` // how long a stop may wait for watches
}

// order is what the process is told first.
type order struct {
	Config Config
	Record string // path that the record goes to
	Log    string // path of its log, already open as its stderr
	Within time.Duration
}

// report is one line from the process.
type report struct {
	Started  bool      `json:",omitempty"`
	Progress *Progress `json:",omitempty"`
	Done     int       `json:",omitempty"` // Seq of the command that is done
	Error    string    `json:",omitempty"` // why it failed, or the start did
	// Ahead answers a step of the clock: how far the wall clock is ahead of what it would
	// show without any.
	Ahead time.Duration `json:",omitempty"`
}
