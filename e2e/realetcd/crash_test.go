//go:build linux

package realetcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pretended is a process that a test ends.
type pretended struct {
	done chan struct{}
	err  error
}

func (p *pretended) Done() <-chan struct{} { return p.done }
func (p *pretended) Err() error            { return p.err }

func (p *pretended) end(err error) {
	p.err = err
	close(p.done)
}

func TestProcessThatEndsUnaskedHasCrashed(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of the one before\nno space in the write-ahead log\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		do   func(*lives, *pretended)
		want string // of the crash; "" none
	}{
		{"it runs", func(*lives, *pretended) {}, ""},
		{"it was asked", func(ls *lives, p *pretended) { ls.ask(p); p.end(errors.New("exit status 2")) }, ""},
		{"it was asked too late", func(ls *lives, p *pretended) { p.end(errors.New("exit status 2")); ls.ask(p) }, "etcd ended by itself: exit status 2"},
		{"another one was asked", func(ls *lives, p *pretended) { ls.ask(&pretended{}); p.end(errors.New("exit status 2")) }, "exit status 2"},
		{"it ended in order", func(_ *lives, p *pretended) { p.end(nil) }, "with exit status 0"},
		{"it was excused", func(ls *lives, p *pretended) { p.end(errors.New("exit status 1")); ls.excuse() }, ""},
		{"it was excused too soon", func(ls *lives, p *pretended) { ls.excuse(); p.end(errors.New("exit status 1")) }, "exit status 1"},
	} {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			p := &pretended{done: make(chan struct{})}
			var ls lives
			ls.begin(life{what: "etcd", process: p, log: log, logged: int64(len("of the one before\n"))})
			row.do(&ls, p)
			got := strings.Join(ls.crashes(), "\n")
			if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
				t.Errorf("crashes %q, want one with %q", got, row.want)
			}
			if got != "" && (!strings.Contains(got, "no space in the write-ahead log") || strings.Contains(got, "of the one before")) {
				t.Errorf("the crash is told as %q; want the end of its own log in it", got)
			}
		})
	}
}

func TestExcuseTellsOfEachEndOnce(t *testing.T) {
	etcd, shim := &pretended{done: make(chan struct{})}, &pretended{done: make(chan struct{})}
	var ls lives
	ls.begin(life{what: "etcd", process: etcd})
	ls.begin(life{what: "shim", process: shim})
	etcd.end(errors.New("exit status 1"))
	if got := strings.Join(ls.excuse(), ","); got != "etcd" {
		t.Errorf("excused %q, want etcd: the shim runs", got)
	}
	if got := ls.excuse(); len(got) > 0 {
		t.Errorf("excused %q once more", got)
	}
}

// Crashed asks removed members too.
func TestCrashesOfRemovedMembersAreKnown(t *testing.T) {
	p := &pretended{done: make(chan struct{})}
	p.end(errors.New("exit status 2"))
	gone := &Member{name: "m4"}
	gone.lives.begin(life{what: "shim", process: p})
	c := &Cluster{members: []*Member{{name: "m1"}}, gone: []*Member{gone}}
	if got := c.Crashed(); len(got) != 1 || !strings.HasPrefix(got[0], "m4: shim ended by itself: exit status 2") {
		t.Errorf("crashed %q, want the shim of m4", got)
	}
}
