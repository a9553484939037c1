//go:build linux

package nethosts

import (
	"io"
	"os"
	"sync"
	"time"
)

const (
	outputBound = 4 << 20 // bytes that wait for a slow writer
	tailBound   = 2 << 10 // bytes that an error quotes
)

// output carries what a program writes to a writer. Two goroutines: one reads,
// whatever the writer does, one writes.
type output struct {
	from, to *os.File // the pipe
	w        io.Writer
	read     chan struct{} // closed when all is read
	written  chan struct{} // closed when all is written

	mu      sync.Mutex
	changed sync.Cond
	waiting []byte
	tail    []byte
	ended   bool
}

func newOutput(w io.Writer) (*output, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{from: from, to: to, w: w, read: make(chan struct{}), written: make(chan struct{})}
	o.changed.L = &o.mu
	return o, nil
}

// attach gives the process its standard output and standard error.
func (p *Process) attach(stdout, stderr io.Writer) error {
	if f, ok := stdout.(*os.File); ok {
		p.cmd.Stdout = f
	} else if stdout != nil {
		o, err := newOutput(stdout)
		if err != nil {
			return err
		}
		p.cmd.Stdout, p.outputs = o.to, append(p.outputs, o)
	}
	if f, ok := stderr.(*os.File); ok {
		p.cmd.Stderr = f
		return nil
	}
	if len(p.outputs) > 0 && same(stdout, stderr) {
		p.cmd.Stderr = p.cmd.Stdout // one writer is never called twice at once
		return nil
	}
	if stderr == nil {
		stderr = io.Discard // the tail is kept for Err
	}
	o, err := newOutput(stderr)
	if err != nil {
		for _, o := range p.outputs {
			o.started(false)
		}
		return err
	}
	p.cmd.Stderr, p.outputs = o.to, append(p.outputs, o)
	return nil
}

// same compares writers of any type.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // types that cannot be compared
	return a == b
}

// said is the end of what the process wrote last, for an error.
func (p *Process) said() string {
	if len(p.outputs) == 0 {
		return ""
	}
	o := p.outputs[len(p.outputs)-1]
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.tail) == 0 {
		return ""
	}
	return "; it wrote last:\n" + string(o.tail)
}

// started is called when the program has its end of the pipe, or never will.
func (o *output) started(ok bool) {
	o.to.Close()
	if !ok {
		o.from.Close()
		return
	}
	go o.readAll()
	go o.writeAll()
}

// finish waits until everything is written, or until no more is read for the
// given time: a process that left the group may hold the pipe for ever, and a
// writer may block for ever.
func (o *output) finish(patience time.Duration) {
	_ = o.from.SetReadDeadline(time.Now().Add(patience))
	<-o.read
	o.from.Close()
	select {
	case <-o.written:
	case <-time.After(patience):
	}
}

func (o *output) readAll() {
	defer close(o.read)
	buf := make([]byte, 32<<10)
	for {
		n, err := o.from.Read(buf)
		o.add(buf[:n], err != nil)
		if err != nil {
			return
		}
	}
}

func (o *output) add(b []byte, end bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting)+len(b) <= outputBound {
		o.waiting = append(o.waiting, b...)
	}
	o.tail = append(o.tail, b...)
	o.tail = o.tail[max(0, len(o.tail)-tailBound):]
	o.ended = o.ended || end
	o.changed.Signal()
}

func (o *output) writeAll() {
	defer close(o.written)
	for {
		b, ok := o.take()
		if !ok {
			return
		}
		_, _ = o.w.Write(b) // the writer's trouble is not the program's
	}
}

// take waits for something to write.
func (o *output) take() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) == 0 && !o.ended {
		o.changed.Wait()
	}
	b := o.waiting
	o.waiting = nil
	return b, len(b) > 0
}
