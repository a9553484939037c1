//go:build linux

package realetcd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// process is what is known of one of a member's processes.
type process interface {
	Done() <-chan struct{}
	Err() error
}

// life is one process of a member, from its start on.
type life struct {
	what    string // etcd, shim
	process process
	log     string // its path, and the bytes in it before
	logged  int64
	excused bool // the harness has asked it to end, or knows why it did
}

func (l life) over() bool {
	select {
	case <-l.process.Done():
		return true
	default:
		return false
	}
}

// lives are all processes that a member has had.
type lives struct {
	mu  sync.Mutex
	all []life
}

func (ls *lives) begin(l life) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all = append(ls.all, l)
}

// ask excuses the end of a process that is about to be asked for it. One that has ended
// already was not asked.
func (ls *lives) ask(p process) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if i := slices.IndexFunc(ls.all, func(l life) bool { return l.process == p }); i >= 0 && !ls.all[i].over() {
		ls.all[i].excused = true
	}
}

// excuse says which processes have ended that nobody has asked to, and takes them for
// asked from now on.
func (ls *lives) excuse() (ended []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i, l := range ls.all {
		if !l.excused && l.over() {
			ls.all[i].excused, ended = true, append(ended, l.what)
		}
	}
	return ended
}

var errStatusZero = errors.New("with exit status 0")

// crashes says of each process that has ended by itself how, and what it said last.
func (ls *lives) crashes() (all []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		if !l.excused && l.over() {
			all = append(all, fmt.Sprintf("%s ended by itself: %v; %s", l.what, cmp.Or(l.process.Err(), errStatusZero), excerpt(l.log, l.logged)))
		}
	}
	return all
}

// Excuse is for faults that may end the member's processes: it says which have ended that
// nobody had asked to, etcd or shim, and that they did is no crash.
func (m *Member) Excuse() (ended []string) { return m.lives.excuse() }

// Crashed says which processes of members, removed ones too, have ended though they were
// neither stopped nor killed nor their member removed.
func (c *Cluster) Crashed() []string {
	c.mu.Lock()
	all := slices.Concat(c.members, c.gone)
	c.mu.Unlock()
	var crashed []string
	for _, m := range all {
		for _, how := range m.lives.crashes() {
			crashed = append(crashed, m.name+": "+how)
		}
	}
	return crashed
}
