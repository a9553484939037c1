//go:build linux

package app

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// A follower loses its quorum for some seconds: the application leaves it, and what
// it has seen is right all the same.
func TestAnApplicationLeavesAMemberThatIsCutOff(t *testing.T) { again(t, leaveCutOff) }

func leaveCutOff(t *testing.T) (unlucky string) {
	c := startServers(t, 3, cluster.ShimSidecar)
	v, err := c.View("ours")
	if err != nil {
		t.Fatal(err)
	}
	bad := c.Followers()[0]
	cfg := everything(c, v, false)
	cfg.Observer = nil
	for _, m := range c.Members() {
		if m != bad {
			cfg.Observer = append(cfg.Observer, m.ClientAddr())
		}
	}
	p := runProgram(t, cfg)
	p.wait("a load that runs", func(r report) bool { return r.Progress != nil && r.Progress.Ops > 100 })
	fault := workload.Fault{Address: v.Endpoint(bad), Cut: time.Now()}
	c.CutPeers(bad)
	p.wait("moves off the member", func(r report) bool { return r.Progress != nil && r.Progress.Moves > 0 })
	settle := time.Now().Add(5 * time.Second) // a call may move long before the streams
	p.wait("five seconds", func(report) bool { return time.Now().After(settle) })
	fault.Heal = time.Now()
	c.Heal()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	upTo, err := c.ref.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rec := p.stop(upTo)
	if bad := judge(t, c.cli, rec, upTo); len(bad) > 0 {
		t.Errorf("violations: %q", bad)
	}
	checkLeaks(t, rec)
	f := workload.Measure(rec.Load, rec.Trace(), c.ref.Events(), fault, OutcomeUnknown)
	if unlucky := nothingToLeave(rec.Moves, fault.Address, fault.Cut, f.LastStream); unlucky != "" {
		return unlucky
	}
	if f.LastStream <= 0 {
		t.Errorf("the last stream left the member after %v; want the streams on it and their ends in the trace", f.LastStream)
	}
	var graded, moved bool
	for _, g := range rec.Grades {
		graded = graded || g.Endpoint == fault.Address && g.Grade == "unhealthy" && g.At.After(fault.Cut) && g.At.Before(fault.Heal)
	}
	for _, m := range rec.Moves {
		moved = moved || m.Endpoint == fault.Address && m.Class == "watch" && m.At.After(fault.Cut) && m.At.Before(fault.Heal)
	}
	if !graded || !moved {
		t.Errorf("grades %v, moves %v; want the member unhealthy and a watch moved off it between cut and heal", rec.Grades, rec.Moves)
	}
	return ""
}

func TestTheProcessEndsWhenItsStdinDoes(t *testing.T) {
	t.Run("before its order", func(t *testing.T) {
		p := startProgram(t)
		p.in.Close()
		if status := p.exit(); status != exitOrphaned {
			t.Errorf("exit status %d, want %d", status, exitOrphaned)
		}
	})
	t.Run("while it starts", func(t *testing.T) {
		p := startProgram(t)
		p.tell(order{Config: Config{Name: "ours", Endpoints: []string{"127.0.0.1:1"}}.withDefaults(), Within: time.Hour})
		p.in.Close()
		if status := p.exit(); status == exitStopped || status < 0 {
			t.Errorf("exit status %d, want that it ended by itself, without a stop", status)
		}
	})
	t.Run("while its load hangs", func(t *testing.T) {
		c := startServers(t, 1, cluster.ShimNone)
		v, err := c.View("ours")
		if err != nil {
			t.Fatal(err)
		}
		p := runProgram(t, everything(c, v, true))
		c.Freeze(c.Member("m1"))
		p.in.Close()
		if status := p.exit(); status != exitOrphaned {
			t.Errorf("exit status %d, want %d, by itself", status, exitOrphaned)
		}
	})
}

// A stop must come to an end while nothing answers.
func TestAStopEndsWhileNoMemberAnswers(t *testing.T) {
	for name, official := range map[string]bool{"ours": false, "official": true} {
		t.Run(name, func(t *testing.T) {
			c := startServers(t, 1, cluster.ShimNone)
			v, err := c.View(name)
			if err != nil {
				t.Fatal(err)
			}
			p := runProgram(t, everything(c, v, official))
			p.wait("a load that runs", func(r report) bool { return r.Progress != nil && r.Progress.Ops > 50 })
			c.Freeze(c.Member("m1"))
			hangs := time.Now().Add(time.Second)
			p.wait("a second", func(report) bool { return time.Now().After(hangs) })
			began := time.Now()
			p.seq++
			p.tell(command{Seq: p.seq, Do: stop, Upto: 1 << 40, Within: time.Second})
			p.wait("the stop", func(r report) bool { return r.Done == p.seq && r.Error == "" })
			if took := time.Since(began); took > time.Second+closing+busy {
				t.Errorf("the stop took %v, want at most %v more than the second that watches were given", took, closing)
			}
			rec, err := readRecord(p.record)
			if err != nil {
				t.Fatal(err)
			}
			pending := 0
			for _, op := range rec.Histories {
				if op.Outcome == "unknown" {
					pending++
				}
				if op.Return < op.Call {
					t.Errorf("operation %+v returned before it was called", op)
				}
			}
			if pending == 0 {
				t.Error("no operation of unknown outcome; want those that hung when the load ended")
			}
			checkLeaks(t, rec)
		})
	}
}

func TestACommandThatCannotBeDoneSaysWhy(t *testing.T) {
	c := startServers(t, 1, cluster.ShimNone)
	v, err := c.View("ours")
	if err != nil {
		t.Fatal(err)
	}
	p := runProgram(t, Config{Name: "ours", Endpoints: v.Endpoints(), Quiet: true})
	for _, bad := range []command{{Do: stepClock, Step: time.Minute}, {Do: "dance"}} {
		p.seq++
		bad.Seq = p.seq
		p.tell(bad)
		r := p.wait(string(bad.Do), func(r report) bool { return r.Done == bad.Seq })
		if r.Error == "" {
			t.Errorf("%s: no error; want one that says why not", bad.Do)
		}
	}
	if r := p.do(command{Do: setEndpoints, Endpoints: v.Endpoints()}); r.Error != "" {
		t.Errorf("endpoints: %s", r.Error)
	}
	rec := p.stop(0)
	if len(rec.Load.Gets)+len(rec.Load.Puts)+len(rec.Histories)+len(rec.Streams) > 0 || len(rec.Load.Watches) == 0 {
		t.Errorf("a quiet load of nothing else recorded %d gets, %d puts, %d operations, %d streams, %d watches; want watches only",
			len(rec.Load.Gets), len(rec.Load.Puts), len(rec.Histories), len(rec.Streams), len(rec.Load.Watches))
	}
}

// A frozen process goes on where it was.
func TestAFrozenProcessRecordsItsOwnSilence(t *testing.T) {
	c := startServers(t, 1, cluster.ShimNone)
	v, err := c.View("ours")
	if err != nil {
		t.Fatal(err)
	}
	p := runProgram(t, Config{Name: "ours", Endpoints: v.Endpoints()})
	p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(time.Second)
	p.cmd.Process.Signal(syscall.SIGCONT)
	upTo, err := c.ref.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec := p.stop(upTo)
	if bad := judge(t, c.cli, rec, upTo); len(bad) > 0 {
		t.Errorf("violations: %q", bad)
	}
	f := workload.Measure(rec.Load, rec.Trace(), c.ref.Events(), workload.Fault{}, OutcomeUnknown)
	if f.Silence < 900*time.Millisecond {
		t.Errorf("the longest silence was %v, want the second for which it was frozen", f.Silence)
	}
}
