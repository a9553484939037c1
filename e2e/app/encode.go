//go:build linux

package app

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// The fields of type error stand in for those of the same name in what is embedded.
type (
	plainRecord Record

	crossingRecord struct {
		plainRecord
		Load     crossingLoad
		Attempts []crossingAttempt
	}
	crossingLoad struct {
		workload.Record
		Gets, Puts []crossingOp
		Watches    []crossingWatch
	}
	crossingOp struct {
		workload.Op
		Err *Error `json:",omitempty"`
	}
	crossingWatch struct {
		workload.WatchRecord
		Closed *Error `json:",omitempty"`
	}
	crossingAttempt struct {
		workload.Attempt
		Err *Error `json:",omitempty"`
	}
)

// MarshalJSON implements json.Marshaler.
func (r Record) MarshalJSON() ([]byte, error) {
	c := crossingRecord{plainRecord: plainRecord(r)}
	c.Load = crossingLoad{
		Record: r.Load,
		Gets:   each(r.Load.Gets, func(o workload.Op) crossingOp { return crossingOp{o, Crossing(o.Err)} }),
		Puts:   each(r.Load.Puts, func(o workload.Op) crossingOp { return crossingOp{o, Crossing(o.Err)} }),
		Watches: each(r.Load.Watches, func(w workload.WatchRecord) crossingWatch {
			return crossingWatch{w, Crossing(w.Closed)}
		}),
	}
	c.Attempts = each(r.Attempts, func(a workload.Attempt) crossingAttempt { return crossingAttempt{a, Crossing(a.Err)} })
	return json.Marshal(c)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Record) UnmarshalJSON(b []byte) error {
	var c crossingRecord
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	*r = Record(c.plainRecord)
	r.Load = c.Load.Record
	arrived := func(o crossingOp) workload.Op { o.Op.Err = landed(o.Err); return o.Op }
	r.Load.Gets = each(c.Load.Gets, arrived)
	r.Load.Puts = each(c.Load.Puts, arrived)
	r.Load.Watches = each(c.Load.Watches, func(w crossingWatch) workload.WatchRecord {
		w.WatchRecord.Closed = landed(w.Closed)
		return w.WatchRecord
	})
	r.Attempts = each(c.Attempts, func(a crossingAttempt) workload.Attempt { a.Attempt.Err = landed(a.Err); return a.Attempt })
	return nil
}

// landed keeps no error nil as an interface too.
func landed(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}

func each[A, B any](all []A, f func(A) B) []B {
	if all == nil {
		return nil
	}
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = f(a)
	}
	return out
}

// writeRecord writes a compressed record: watches of the same keys deliver the same.
func writeRecord(path string, r Record) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := json.NewEncoder(z).Encode(r); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return z.Close()
}

func readRecord(path string) (r Record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return r, fmt.Errorf("record %s: %w", path, err)
	}
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		return r, fmt.Errorf("record %s: %w", path, err)
	}
	return r, nil
}
