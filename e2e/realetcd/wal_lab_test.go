//go:build linux

package realetcd

import (
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// With its store elsewhere, a leader whose write-ahead log hangs answers what it has in
// memory: for as long as that lasts it names itself, while another one leads. Only its shim
// knows better.
func TestLeaderWhoseLogHangsGoesOnNamingItself(t *testing.T) {
	t.Parallel()
	ctx := within(t, 40*time.Second)
	c := started(ctx, t, Config{Shim: ShimSidecar, Disks: true, OnlyWAL: true})
	write(ctx, t, c, "k", "before")
	old := must1(c.Leader(ctx))(t)
	must(t, old.Disk().Hang())
	cli := must1(c.Client(old))(t)
	defer cli.Close()
	writing := make(chan struct{})
	go func() { // what becomes of it does not matter
		defer close(writing)
		cli.Put(ctx, "k", "stops the raft loop")
	}()
	other := must1(c.WaitOtherLeader(ctx, old))(t)
	const enough = 20
	answers := 0
	for until := time.Now().Add(3 * time.Second); answers < enough || time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		said, mute := old.askSoon(ctx)
		switch {
		case mute == nil && said.leader != old.ID():
			t.Fatalf("it says %+v; want it to name itself (%x) while %s leads", said, old.ID(), other.name)
		case mute == nil:
			answers++
		case time.Now().After(until.Add(5 * time.Second)): // a busy machine may swallow some, not most
			t.Fatalf("it answered %d times, then %v; want %d answers", answers, mute, enough)
		}
	}
	if news := must1(old.askShim(ctx))(t); news.Status != healthsvc.StatusNotServing {
		t.Errorf("its shim says %v; want %v", news.Status, healthsvc.StatusNotServing)
	}
	must(t, old.Disk().Resume())
	<-writing
	must(t, c.Settled(ctx, 0)) // it names the leader that all others name
}
