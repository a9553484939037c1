package picker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/picker"
)

type grades = map[string]picker.Grade

func TestWithoutGradesEveryEndpointGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 3), 3)
		if got := r.share(30); got[1] != 10 || got[2] != 10 || got[3] != 10 {
			t.Errorf("shares %v of 30, want 10 each: no evidence must mean plain round robin", got)
		}
		for range 3 {
			r.open(picker.ClassWatch)
		}
		for _, e := range r.hub.Endpoints() {
			if e.Streams() != 1 || e.Calls[picker.ClassWatch] != 1 {
				t.Errorf("%s has calls %v, want one watch: streams take turns too", e.Address, e.Calls)
			}
		}
	})
}

func TestPicksFollowGradesAsSetGradesReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 4), 4)
		for _, tc := range []struct {
			grades grades
			want   []uint64
		}{
			{grades{addr(1): picker.Healthy}, []uint64{1}},
			{grades{addr(1): picker.Healthy, addr(3): picker.Healthy}, []uint64{1, 3}},
			{grades{addr(2): picker.Suspect}, []uint64{1, 3, 4}},
			{grades{addr(1): picker.Suspect, addr(2): picker.Unhealthy, addr(3): picker.Parked}, []uint64{4}},
			{grades{addr(1): picker.Suspect, addr(2): picker.Unhealthy, addr(3): picker.Parked, addr(4): picker.Unhealthy}, []uint64{1}},
			{grades{addr(1): picker.Unhealthy, addr(2): picker.Unhealthy, addr(3): picker.Parked, addr(4): picker.Unhealthy}, []uint64{1, 2, 4}},
			{grades{addr(1): picker.Parked, addr(2): picker.Parked, addr(3): picker.Parked, addr(4): picker.Parked}, []uint64{1, 2, 3, 4}},
			{grades{"elsewhere:2379": picker.Healthy, addr(1): picker.Unhealthy}, []uint64{2, 3, 4}},
			{nil, []uint64{1, 2, 3, 4}},
		} {
			r.hub.SetGrades(tc.grades)
			got := r.share(2 * len(tc.want))
			if len(got) != len(tc.want) {
				t.Errorf("with %v: %v answered, want exactly %v", tc.grades, got, tc.want)
			}
			for _, id := range tc.want {
				if got[id] != 2 {
					t.Errorf("with %v: member %d answered %d of %d, want 2: they take turns", tc.grades, id, got[id], 2*len(tc.want))
				}
			}
		}
	})
}

// Members that work, are down or hang, with random grades: who answers is
// compared with the rule, said again in the plainest way.
func TestRandomGradesAndOutagesAgreeWithTheRule(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		const n = 4
		f := newFleet(t, n)
		r := newRig(t, f, n)
		all := []picker.Grade{picker.Unknown, picker.Healthy, picker.Suspect, picker.Unhealthy, picker.Parked}
		level := map[picker.Grade]int{picker.Healthy: 0, picker.Unknown: 1, picker.Suspect: 2, picker.Unhealthy: 3, picker.Parked: 4}
		for round := range 60 {
			g := grades{}
			up := map[uint64]bool{}
			for i := 1; i <= n; i++ {
				g[addr(i)] = all[rnd.IntN(len(all))]
				f.stop(addr(i))
				synctest.Wait()
				if up[uint64(i)] = rnd.IntN(3) > 0; up[uint64(i)] {
					f.start(addr(i))
				}
			}
			synctest.Wait()
			// Let the attempts that the reset starts be over, and stay clear of the
			// next, a second later: each begins the rotation anew.
			r.conn.ResetConnectBackoff()
			time.Sleep(500 * time.Millisecond)
			r.hub.SetGrades(g)
			best, want := 9, []uint64(nil)
			for i := uint64(1); i <= n; i++ {
				l := level[g[addr(int(i))]]
				if !up[i] || l > best {
					continue
				}
				if l < best {
					best, want = l, nil
				}
				want = append(want, i)
			}
			if want == nil {
				if _, err := r.tryGet(context.Background()); status.Code(err) != codes.Unavailable {
					t.Fatalf("round %d: all down, got %v, want Unavailable", round, err)
				}
				continue
			}
			if best == level[picker.Parked] && slices.ContainsFunc(slices.Collect(maps.Values(g)), func(g picker.Grade) bool { return g != picker.Parked }) {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				if id, err := r.tryGet(ctx); status.Code(err) != codes.DeadlineExceeded {
					t.Fatalf("round %d, up %v, grades %v: member %d answered, error %v; want the call to wait: only parked ones are up", round, up, g, id, err)
				}
				cancel()
				continue
			}
			got := r.share(len(want))
			for _, id := range want {
				if got[id] != 1 || len(got) != len(want) {
					t.Fatalf("round %d, up %v, grades %v: states %v: answers %v, want one each of %v", round, up, g, r.states(), got, want)
				}
			}
		}
	})
}

func TestLoneEndpointIsUsedWhateverItsGrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 1), 1)
		for g := picker.Unknown; g <= picker.Parked; g++ {
			r.hub.SetGrades(grades{addr(1): g})
			if got := r.get(); got != 1 {
				t.Errorf("grade %v: answered by %d, want 1", g, got)
			}
		}
	})
}

func TestCallsWaitForAHealthyEndpointThatConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.setDial(addr(2), dialHangs)
		r := newRig(t, f, 2)
		r.hub.SetGrades(grades{addr(1): picker.Suspect, addr(2): picker.Healthy})
		g := r.goGet(picker.ClassRead)
		time.Sleep(time.Second)
		if g.over() {
			t.Fatal("the call went to the suspect although a healthy endpoint was connecting")
		}
		if g.call.Sent() || g.call.Address() != "" {
			t.Errorf("while waiting: sent %v, address %q; want neither", g.call.Sent(), g.call.Address())
		}
		// The attempt fails after gRPC's 20 s, and from then on nobody waits for
		// that endpoint until it stands.
		<-g.done
		if g.err != nil || g.id != 1 {
			t.Fatalf("answered by %d, error %v; want 1 once the attempt has failed", g.id, g.err)
		}
		f.setDial(addr(2), dialWorks)
		time.Sleep(30 * time.Second)
		if got := r.share(4); got[2] != 4 {
			t.Errorf("shares %v, want all on 2 now that it stands", got)
		}
	})
}

func TestWaitingCallIsWokenByGrades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.setDial(addr(2), dialHangs)
		r := newRig(t, f, 2)
		r.hub.SetGrades(grades{addr(1): picker.Suspect, addr(2): picker.Healthy})
		g := r.goGet(picker.ClassRead)
		synctest.Wait()
		if g.over() {
			t.Fatal("did not wait")
		}
		r.hub.SetGrades(nil)
		synctest.Wait()
		if !g.over() || g.id != 1 {
			t.Errorf("still waiting after the grades were lifted")
		}
	})
}

func TestCallEndedWhileItWaitsReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.setDial(addr(2), dialHangs)
		r := newRig(t, f, 2)
		r.hub.SetGrades(grades{addr(1): picker.Suspect, addr(2): picker.Healthy})
		g := r.goGet(picker.ClassMutation)
		synctest.Wait()
		gone := errors.New("gone")
		if !g.call.End(gone) {
			t.Error("End reports that the call was over")
		}
		synctest.Wait()
		if !g.over() {
			t.Fatal("the call hangs after End")
		}
		if status.Code(g.err) != codes.Canceled || g.call.Cause() != gone || g.call.Sent() {
			t.Errorf("error %v, cause %v, sent %v; want Canceled, %v, not sent", g.err, g.call.Cause(), g.call.Sent(), gone)
		}
	})
}

// Taking an endpoint out of the choice is not enough; its streams are moved
// by ending them.
func TestStreamsOnABadEndpointGoOnUntilEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 2), 2)
		r.hub.SetGrades(grades{addr(1): picker.Healthy})
		watch, lease := r.open(picker.ClassWatch), r.open(picker.ClassLease)
		r.hub.SetGrades(grades{addr(1): picker.Unhealthy, addr(2): picker.Healthy})
		if err := errors.Join(watch.ping(), lease.ping()); err != nil || watch.id != 1 || lease.id != 1 {
			t.Fatalf("streams: %v, on %d and %d; want both alive on 1", err, watch.id, lease.id)
		}
		if got := r.get(); got != 2 {
			t.Errorf("a new call went to %d, want 2", got)
		}
		calls := r.hub.Calls(addr(1))
		if len(calls) != 2 || calls[0] != watch.call || calls[1] != lease.call {
			t.Fatalf("listed %v, want the two streams, oldest first", calls)
		}
		moved := errors.New("moved")
		for _, c := range calls {
			if c.Class() == picker.ClassWatch {
				c.End(moved)
			}
		}
		if _, err := watch.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("ended stream: %v, want Canceled", err)
		}
		if got := context.Cause(watch.ctx); got != moved {
			t.Errorf("cause %v, want %v", got, moved)
		}
		if err := lease.ping(); err != nil {
			t.Errorf("the lease stream, not ended, broke: %v", err)
		}
		if again := r.open(picker.ClassWatch); again.id != 2 {
			t.Errorf("reopened on %d, want 2", again.id)
		}
	})
}

func TestEndpointRemovedByTheResolverKeepsItsCallsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 3), 2)
		r.hub.SetGrades(grades{addr(1): picker.Healthy})
		s := r.open(picker.ClassWatch)
		r.res.UpdateState(stateOf([]string{addr(2), addr(3)}))
		synctest.Wait()
		if got := r.hub.Calls(addr(1)); len(got) != 1 || got[0] != s.call {
			t.Fatalf("listed %v, want the stream that is still there", got)
		}
		if err := s.ping(); err != nil {
			t.Errorf("stream: %v, want it alive: gRPC closes gracefully", err)
		}
		if got := r.hub.Endpoints(); len(got) != 2 || got[0].Address != addr(2) || got[1].ServerName != "name."+addr(3) {
			t.Errorf("endpoints %v, want 2 and 3 in the resolver's order", got)
		}
		s.call.End(nil)
		if got := r.hub.Calls(addr(1)); len(got) != 0 {
			t.Errorf("listed %v after the end", got)
		}
	})
}

func TestCallIsFiledAgainWhenGRPCRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		hub := picker.NewHub()
		defer hub.Close()
		hub.SetMain(addrs(2))
		r := connectConfig(t, f, hub, `{"loadBalancingConfig":`+hub.LoadBalancingConfig()+`,
			"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"1s","maxBackoff":"1s",
			"backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`, addrs(2))
		r.conn.Connect()
		synctest.Wait()
		hub.SetGrades(grades{addr(1): picker.Healthy})
		f.members[addr(1)].set(func(m *member) { m.refuse = 1 })
		hold := make(chan struct{})
		f.members[addr(2)].set(func(m *member) { m.hold = hold })
		g := r.goGet(picker.ClassRead)
		synctest.Wait() // refused by 1, gRPC waits about a second
		if got := hub.Calls(addr(1)); len(got) != 0 {
			t.Errorf("listed %v on 1 between the attempts, want nothing: it is nowhere", got)
		}
		if !g.call.Sent() {
			t.Error("Sent is false although the first attempt reached the member")
		}
		hub.SetGrades(grades{addr(2): picker.Healthy})
		time.Sleep(2 * time.Second)
		if got := hub.Calls(addr(2)); len(got) != 1 || got[0] != g.call || g.call.Address() != addr(2) {
			t.Errorf("listed %v on 2, address %q; want the retried call", got, g.call.Address())
		}
		close(hold)
		<-g.done
		if g.err != nil || g.id != 2 || len(hub.Calls(addr(2))) != 0 {
			t.Errorf("answer of %d, error %v, still listed %v; want 2 and nothing", g.id, g.err, hub.Calls(addr(2)))
		}
	})
}

func TestEndedCallIsNotRetriedByGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		r := newRig(t, f, 2)
		hold := make(chan struct{})
		defer close(hold)
		for _, m := range f.members {
			m.set(func(m *member) { m.hold = hold })
		}
		g := r.goGet(picker.ClassMutation)
		synctest.Wait()
		g.call.End(errors.New("given up"))
		<-g.done
		if served := f.members[addr(1)].served + f.members[addr(2)].served; served != 1 {
			t.Errorf("sent %d times, want once", served)
		}
		if !g.call.Sent() {
			t.Error("Sent is false for a call that the member has received")
		}
	})
}

func TestUnsentCallSurvivesTheLossOfItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		f.stop(addr(1))
		r := newRig(t, f, 1)
		if _, err := r.tryGet(context.Background()); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want Unavailable as gRPC gives it", err)
		}
		ctx, call := r.hub.Begin(context.Background(), picker.ClassMutation, "m")
		defer call.Finish()
		go func() {
			time.Sleep(time.Second)
			f.start(addr(1))
		}()
		if _, err := r.kv.Range(ctx, &pb.RangeRequest{}, grpc.WaitForReady(true)); err != nil {
			t.Errorf("waiting for ready: %v", err)
		}
	})
}

func TestStreamsGoToTheEndpointWithTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 3), 3)
		r.hub.SetGrades(grades{addr(1): picker.Healthy})
		for range 4 {
			r.open(picker.ClassWatch)
		}
		healthy := grades{addr(1): picker.Healthy, addr(2): picker.Healthy, addr(3): picker.Healthy}
		r.hub.SetGrades(healthy)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { r.open(picker.ClassStream) })
		}
		wg.Wait()
		for _, e := range r.hub.Endpoints() {
			if e.Streams() != 4 {
				t.Errorf("%s has %d streams of 12, want 4: also when they open at once", e.Address, e.Streams())
			}
		}
		got := r.share(30)
		if got[1] != 10 || got[2] != 10 || got[3] != 10 {
			t.Errorf("shares %v, want 10 each: single calls do not care for streams", got)
		}
	})
}

func TestPreferIsUsedOnceAndOnlyWhereCallsMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 3), 3)
		healthy := grades{addr(1): picker.Healthy, addr(2): picker.Healthy, addr(3): picker.Suspect}
		r.hub.SetGrades(healthy)
		r.open(picker.ClassWatch)
		r.open(picker.ClassWatch)
		for range 3 {
			r.hub.Prefer(addr(2), picker.ClassWatch)
			r.open(picker.ClassLease) // another class does not take the hint
			r.open(picker.ClassLease)
			r.get()
			if s := r.open(picker.ClassWatch); s.id != 2 {
				t.Errorf("opened on %d, want 2 as preferred", s.id)
			}
			if s := r.open(picker.ClassWatch); s.id != 1 {
				t.Errorf("second opened on %d, want 1: the hint is for one call", s.id)
			}
		}
		r.hub.Prefer(addr(3), picker.ClassRead)
		if got := r.get(); got == 3 {
			t.Error("a hint sent a call to a suspect although healthy ones are there")
		}
		r.hub.SetGrades(grades{addr(3): picker.Healthy})
		r.hub.SetGrades(nil)
		r.hub.Prefer(addr(3), picker.Class(77)) // stands for ClassOther
		r.hub.Prefer(addr(1), picker.ClassRead)
		r.hub.Prefer(addr(2), picker.ClassRead)
		if got := r.get(); got != 2 {
			t.Errorf("answered by %d, want 2: the later hint replaces the earlier", got)
		}
		r.hub.Prefer("nowhere:1", picker.ClassRead)
		r.get()
	})
}

func TestSideConnectionsAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		hub := picker.NewHub()
		defer hub.Close()
		hub.SetMain(addrs(2))
		side := connect(t, f, hub, addrs(1))
		if side.get() != 1 || hub.Endpoints() != nil {
			t.Errorf("endpoints %v with a side connection only, want none", hub.Endpoints())
		}
		main := connect(t, f, hub, addrs(2))
		main.conn.Connect()
		synctest.Wait()
		hub.SetGrades(grades{addr(1): picker.Unhealthy, addr(2): picker.Healthy})
		if got := side.share(4); got[1] != 4 {
			t.Errorf("side connection: %v, want all on 1, the only one it has", got)
		}
		s := side.open(picker.ClassWatch)
		if got := hub.Calls(addr(1)); len(got) != 0 {
			t.Errorf("listed %v, want nothing of a side connection", got)
		}
		if !s.call.Sent() {
			t.Error("Sent is false on a side connection although bytes went out")
		}
		if got := len(hub.Endpoints()); got != 2 {
			t.Errorf("%d endpoints, want the main connection's 2", got)
		}
		s.call.End(nil)
		if _, err := s.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("ended stream on a side connection: %v, want Canceled", err)
		}
		_ = main.conn.Close()
		synctest.Wait()
		if got := hub.Endpoints(); got != nil {
			t.Errorf("endpoints %v after the main connection closed: a side connection must not take its place", got)
		}
		if got := side.get(); got != 1 {
			t.Errorf("side connection answered by %d, want 1", got)
		}
	})
}

func TestNextConnectionTakesThePlaceOfAClosedMainOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		first := newRig(t, f, 2)
		second := connect(t, f, first.hub, addrs(2))
		second.conn.Connect()
		synctest.Wait()
		first.hub.SetGrades(grades{addr(2): picker.Healthy})
		if got := second.share(4); got[1] != 2 {
			t.Errorf("second connection: %v, want plain turns", got)
		}
		_ = first.conn.Close()
		synctest.Wait()
		if got := second.share(4); got[2] != 4 {
			t.Errorf("second connection: %v, want all on the healthy one now", got)
		}
		if s := second.open(picker.ClassWatch); len(first.hub.Calls(addr(2))) != 1 || s.id != 2 {
			t.Error("its calls are not filed")
		}
	})
}

func TestClosedHubLeavesPlainRoundRobin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		r := newRig(t, f, 2)
		r.hub.SetGrades(grades{addr(1): picker.Healthy})
		s := r.open(picker.ClassWatch)
		r.hub.Close()
		r.hub.Close() // twice does no harm
		if got := r.share(4); got[1] != 2 || got[2] != 2 {
			t.Errorf("shares %v, want turns", got)
		}
		if r.hub.Endpoints() != nil || r.hub.Reconnect(addr(1)) {
			t.Error("a closed hub still answers for its connection")
		}
		r.hub.SetGrades(grades{addr(2): picker.Healthy})
		r.hub.OnChange(func() { t.Error("told of a change after Close") })
		r.res.UpdateState(stateOf([]string{addr(2), addr(1)}))
		late := connect(t, f, r.hub, addrs(2))
		late.conn.Connect()
		synctest.Wait()
		if got := late.share(4); got[1] != 2 || got[2] != 2 {
			t.Errorf("connection made afterwards: shares %v, want turns", got)
		}
		if err := s.ping(); err != nil {
			t.Errorf("a stream from before: %v", err)
		}
		if !s.call.End(nil) {
			t.Error("a call from before cannot be ended")
		}
	})
}

func TestConfigWithoutALivingHubIsRoundRobinAndAMalformedOneIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		hub := picker.NewHub()
		defer hub.Close()
		for _, config := range []string{
			`{"loadBalancingConfig":[{"quorumwise":{"hub":"no-such"}}]}`,
			`{"loadBalancingConfig":[{"quorumwise":{}}]}`,
			`{"loadBalancingConfig":[{"quorumwise":{"hub":"` + hub.ID() + `x","more":[1]}}]}`,
		} {
			r := connectConfig(t, f, hub, config, addrs(2))
			r.conn.Connect()
			synctest.Wait()
			if got := r.share(4); got[1] != 2 || got[2] != 2 {
				t.Errorf("%s: shares %v, want turns", config, got)
			}
			if hub.Endpoints() != nil {
				t.Errorf("%s: the connection reached a hub that it does not name", config)
			}
		}
	})
	for _, config := range []string{
		`{"loadBalancingConfig":[{"quorumwise":{"hub":7}}]}`,
		`{"loadBalancingConfig":[{"quorumwise":["1"]}]}`,
		`{"loadBalancingConfig":[{"quorumwise":"1"}]}`,
	} {
		_, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(config))
		if err == nil || !strings.Contains(err.Error(), "LoadBalancingConfig") {
			t.Errorf("%s: error %v, want one that says where a config comes from", config, err)
		}
	}
}

func TestIdleConnectionComesBackAsTheMainOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := newRig(t, f, 2)
		r.hub.SetGrades(grades{addr(3): picker.Healthy, addr(1): picker.Unhealthy})
		r.res.UpdateState(stateOf([]string{addr(1), addr(3)}))
		synctest.Wait()
		if r.get() != 3 {
			t.Fatal("not on the healthy one")
		}
		r.res.InitialState(stateOf([]string{addr(1), addr(3)}))
		time.Sleep(31 * time.Minute)
		if got := r.conn.GetState(); got != connectivity.Idle {
			t.Fatalf("connection is %v, want idle", got)
		}
		if got := r.hub.Endpoints(); got != nil {
			t.Errorf("endpoints %v of an idle connection, want none", got)
		}
		side := connect(t, f, r.hub, addrs(1))
		side.get()
		r.get()
		synctest.Wait()
		if got := r.share(4); got[3] != 4 {
			t.Errorf("after idleness: %v, want all on 3", got)
		}
		if got := r.states(); len(got) != 2 || got[addr(3)] != connectivity.Ready {
			t.Errorf("endpoints %v, want 1 and 3", got)
		}
	})
}

func TestReconnectReplacesTheConnectionAndSparesItsCalls(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d endpoints", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, n)
				r := newRig(t, f, n)
				// Suspects, so that the new connection is waited for.
				r.hub.SetGrades(grades{addr(1): picker.Healthy, addr(2): picker.Suspect, addr(3): picker.Suspect})
				s := r.open(picker.ClassWatch)
				before := f.dialed(addr(1))
				others := f.dialed(addr(2))
				if !r.hub.Reconnect(addr(1)) {
					t.Fatal("Reconnect says that there is no such endpoint")
				}
				if got := r.get(); got != 1 { // not kept from calls, not failed: waited for
					t.Errorf("answered by %d, want 1", got)
				}
				synctest.Wait()
				if got := f.dialed(addr(1)); got != before+1 {
					t.Errorf("dialled %d times more, want once", got-before)
				}
				if got := f.dialed(addr(2)); got != others {
					t.Errorf("another endpoint was dialled too")
				}
				if err := s.ping(); err != nil {
					t.Errorf("stream on the old connection: %v", err)
				}
				if got := r.hub.Calls(addr(1)); len(got) != 1 {
					t.Errorf("listed %v, want the stream on the old connection", got)
				}
				if r.hub.Reconnect("nowhere:1") {
					t.Error("Reconnect of an unknown endpoint reports success")
				}
			})
		})
	}
}

func TestReconnectDoesNotWaitForBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.stop(addr(1))
		r := newRig(t, f, 2)
		time.Sleep(10 * time.Minute) // backoff is at its two minutes
		f.start(addr(1))
		synctest.Wait()
		if got := r.states()[addr(1)]; got == connectivity.Ready {
			t.Fatal("connected without help: this test would prove nothing")
		}
		r.hub.Reconnect(addr(1))
		synctest.Wait()
		if got := r.states()[addr(1)]; got != connectivity.Ready {
			t.Errorf("state %v right after Reconnect, want ready", got)
		}
	})
}

func TestOnChangeTellsOfEndpointsAndConnectivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		hub := picker.NewHub()
		defer hub.Close()
		hub.SetMain(addrs(2))
		var mu sync.Mutex
		var seen []string
		hub.OnChange(func() {
			mu.Lock()
			defer mu.Unlock()
			s := ""
			for _, e := range hub.Endpoints() {
				s += fmt.Sprint(e.Address, "=", e.State, " ")
			}
			seen = append(seen, s)
		})
		last := func() string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return seen[len(seen)-1]
		}
		r := connect(t, f, hub, addrs(2))
		if got := last(); got != "" {
			t.Errorf("told %q before the first use, want nothing yet", got)
		}
		r.conn.Connect()
		if got := last(); got != "m1:2379=READY m2:2379=READY " {
			t.Errorf("told %q, want both ready", got)
		}
		n := len(seen)
		hub.SetGrades(grades{addr(1): picker.Suspect})
		r.get()
		last()
		if len(seen) != n {
			t.Error("told of a change when only grades had changed")
		}
		f.stop(addr(2))
		time.Sleep(time.Second)
		if got := last(); !strings.Contains(got, "m2:2379=TRANSIENT_FAILURE") {
			t.Errorf("told %q, want that 2 is lost", got)
		}
		r.res.UpdateState(stateOf([]string{addr(1)}))
		if got := last(); got != "m1:2379=READY " {
			t.Errorf("told %q, want 1 alone", got)
		}
		_ = r.conn.Close()
		if got := last(); got != "" {
			t.Errorf("told %q, want nothing after the connection closed", got)
		}
	})
}

// The policy beneath says TransientFailure while a lone endpoint is out; a call
// that does not wait for ready would fail by it.
func TestReconnectShowsNothingOfItsTwoSteps(t *testing.T) {
	for _, n := range []int{1, 2} {
		hub := picker.NewHub()
		defer hub.Close()
		conn := newBareConn(t, picker.Name, `{"hub":"`+hub.ID()+`"}`, n)
		before := len(conn.states)
		hub.Reconnect(addr(1))
		conn.work()
		for _, s := range conn.states[before:] {
			if s == connectivity.TransientFailure {
				t.Errorf("%d endpoints: states %v, want no failure among them", n, conn.states[before:])
			}
		}
		if got := conn.states[len(conn.states)-1]; got != connectivity.Ready {
			t.Errorf("%d endpoints: ends %v, want ready", n, got)
		}
	}
}

func TestStreamsOpenedAtOnceAreSpreadEvenly(t *testing.T) {
	hub := picker.NewHub()
	defer hub.Close()
	p := newBareConn(t, picker.Name, `{"hub":"`+hub.ID()+`"}`, 3).picker
	hub.SetGrades(grades{addr(1): picker.Healthy, addr(2): picker.Healthy, addr(3): picker.Healthy})
	const openers, each = 3, 50
	for round := range 100 {
		var wg sync.WaitGroup
		var calls [openers][each]*picker.Call
		start := make(chan struct{})
		for i := range openers {
			wg.Go(func() {
				<-start
				for k := range each {
					ctx, call := hub.Begin(context.Background(), picker.ClassWatch, "m")
					calls[i][k] = call
					_, _ = p.Pick(balancer.PickInfo{Ctx: ctx})
				}
			})
		}
		close(start)
		wg.Wait()
		for _, e := range hub.Endpoints() {
			if e.Streams() != openers*each/3 {
				t.Fatalf("round %d: %s has %d of %d streams, want a third", round, e.Address, e.Streams(), openers*each)
			}
		}
		for _, some := range calls {
			for _, c := range some {
				c.Finish()
			}
		}
	}
}

func TestCallOfAnotherClientIsNotFiledHere(t *testing.T) {
	hub, other := picker.NewHub(), picker.NewHub()
	defer hub.Close()
	defer other.Close()
	p := newBareConn(t, picker.Name, `{"hub":"`+hub.ID()+`"}`, 1).picker
	ctx, call := other.Begin(context.Background(), picker.ClassRead, "m")
	defer call.Finish()
	pickOnce(t, p, ctx)
	if len(hub.Calls(addr(1)))+len(other.Calls(addr(1))) != 0 || call.Address() != "" || !call.Sent() {
		t.Errorf("address %q, sent %v; want it unfiled, and sent to be on the safe side", call.Address(), call.Sent())
	}
}

func TestHubCloseWaitsForItsOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := picker.NewHub()
		release := make(chan struct{})
		hub.OnChange(func() { <-release })
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			hub.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while the function runs: it may use what its owner has freed")
		default:
		}
		close(release)
		<-closed
	})
}

func TestResolverErrorLeavesTheEndpointsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFleet(t, 2), 2)
		r.hub.SetGrades(grades{addr(2): picker.Healthy})
		r.res.CC().ReportError(errors.New("no such host"))
		synctest.Wait()
		if got := r.share(4); got[2] != 4 {
			t.Errorf("shares %v, want all on 2", got)
		}
	})
}

// After SetGrades has returned, ending what Calls lists leaves nothing behind on
// the endpoint: a call cannot be picked by the old grades and filed later.
func TestNoCallSlipsOntoAnEndpointAfterSetGrades(t *testing.T) {
	hub := picker.NewHub()
	defer hub.Close()
	p := newBareConn(t, picker.Name, `{"hub":"`+hub.ID()+`"}`, 2).picker
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, call := hub.Begin(context.Background(), picker.ClassRead, "m")
				if res, err := p.Pick(balancer.PickInfo{Ctx: ctx}); err == nil {
					res.Done(balancer.DoneInfo{})
				}
				call.Finish()
			}
		})
	}
	for i := range 5000 {
		bad, good := addr(1+i%2), addr(2-i%2)
		hub.SetGrades(grades{bad: picker.Unhealthy, good: picker.Healthy})
		for _, c := range hub.Calls(bad) {
			c.End(errors.New("moved"))
		}
		if left := hub.Calls(bad); len(left) != 0 {
			t.Fatalf("round %d: %d calls appeared after SetGrades had returned", i, len(left))
		}
	}
}

// Everything at once, for the race detector; calls must go on all the while.
func TestEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := newRig(t, f, 3)
		r.hub.OnChange(func() { r.hub.Endpoints() })
		stop := make(chan struct{})
		var wg sync.WaitGroup
		loop := func(do func(i int)) {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						do(i)
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		for range 4 {
			loop(func(int) { r.get() })
		}
		loop(func(int) {
			s := r.open(picker.ClassWatch)
			if err := s.ping(); err != nil {
				t.Errorf("stream: %v", err)
			}
			s.call.Finish()
		})
		loop(func(i int) {
			r.hub.SetGrades(grades{addr(1 + i%3): picker.Grade(i % 5), addr(1 + (i+1)%3): picker.Healthy})
		})
		loop(func(i int) { r.hub.Prefer(addr(1+i%3), picker.Class(i%6)) })
		loop(func(i int) { r.hub.Reconnect(addr(1 + i%3)) })
		loop(func(i int) {
			all := addrs(3)
			rand.Shuffle(3, func(i, j int) { all[i], all[j] = all[j], all[i] })
			r.res.UpdateState(stateOf(all[:2+i%2]))
		})
		loop(func(i int) {
			for _, e := range r.hub.Endpoints() {
				for _, c := range r.hub.Calls(e.Address) {
					_ = fmt.Sprint(c.Class(), c.Method(), c.Began(), c.Picked(), c.Address(), c.Sent(), c.Cause())
				}
			}
		})
		loop(func(i int) {
			side := connect(t, f, r.hub, addrs(1))
			side.get()
			_ = side.conn.Close()
		})
		time.Sleep(150 * time.Millisecond)
		close(stop)
		wg.Wait()
		r.res.UpdateState(stateOf(addrs(3)))
		r.hub.SetGrades(nil)
		synctest.Wait()
		r.get() // spends the hint that may be left
		if got := r.share(9); !slices.Equal([]int{got[1], got[2], got[3]}, []int{3, 3, 3}) {
			t.Errorf("afterwards: shares %v, want 3 each", got)
		}
		for i := 1; i <= 3; i++ {
			if left := r.hub.Calls(addr(i)); len(left) != 0 {
				t.Errorf("%d calls left on %s", len(left), addr(i))
			}
		}
	})
}
