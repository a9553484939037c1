package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// cluster is three hosts, each with a port for etcd and one for the shim.
type cluster struct {
	t          *testing.T
	etcd, shim int
}

// newCluster takes ports that etcd and the shim do not have by custom, and the system gives to
// nobody by itself: somebody may be there on all addresses.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{t: t, etcd: 22379, shim: 22378}
}

// address is in a loopback network that only this process uses: whoever tests beside it takes no
// port from it, and answers nobody where nobody is to answer.
func (c *cluster) address(host, port int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 64+pid>>14&127, pid>>6&255, pid&63<<2+host, port)
}

// serve answers there with srv.
func (c *cluster) serve(host, port int, srv healthpb.HealthServer) {
	c.t.Helper()
	lis, err := net.Listen("tcp", c.address(host, port))
	if err != nil {
		c.t.Fatal(err)
	}
	g := grpc.NewServer()
	healthpb.RegisterHealthServer(g, srv)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(lis) })
	c.t.Cleanup(func() { g.Stop(); serving.Wait() })
}

// member serves a report of that member, beside etcd or in its process.
func (c *cluster) member(host, port int, r healthsvc.Report) {
	r.Cluster, r.Member = cmp.Or(r.Cluster, 0xc0ffee), uint64(0xa0+host)
	srv := healthsvc.NewServer(healthsvc.ServerOptions{})
	srv.Publish(r)
	c.serve(host, port, srv)
}

func (c *cluster) endpoints() string {
	return strings.Join([]string{c.address(1, c.etcd), c.address(2, c.etcd), c.address(3, c.etcd)}, ",")
}

func (c *cluster) status(args ...string) (string, error) {
	return run(c.t.Context(), c.asked(args...)...)
}

func (c *cluster) asked(args ...string) []string {
	return append([]string{"status", "--endpoints", c.endpoints(), "--shim-port", strconv.Itoa(c.shim), "--command-timeout", "30s"}, args...)
}

func good() healthsvc.Report {
	return healthsvc.Report{
		Identity: healthsvc.Identity{Leader: 0xa2, Term: 7},
		Serving:  true, Quorum: true, LastProof: time.Now(), RoundTrip: 1500 * time.Microsecond,
	}
}

func TestStatusShowsEveryMemberAndTheLeader(t *testing.T) {
	c := newCluster(t)
	c.member(1, c.shim, good())
	c.member(2, c.etcd, good()) // in process
	cut := healthsvc.Report{Identity: healthsvc.Identity{Leader: 0xa3, Term: 6}, Reason: healthsvc.ReasonNoQuorum}
	c.member(3, c.shim, cut) // an ex-leader that still names itself
	out, err := c.status()
	if err != nil {
		t.Errorf("status = %v, want success: two of three serve", err)
	}
	want := []string{
		"ENDPOINT MEMBER STATUS REASON LEADER TERM PROOF AGE ROUND TRIP VIA",
		c.address(1, c.etcd) + " a1 serving - a2 7",
		c.address(2, c.etcd) + " a2 * serving - a2 7",
		c.address(3, c.etcd) + " a3 not-serving no-quorum a3 6 - - shim",
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(want) {
		t.Fatalf("status printed\n%s\nwant %d lines", out, len(want))
	}
	for i, line := range lines {
		if got := strings.Join(strings.Fields(line), " "); !strings.HasPrefix(got, want[i]) {
			t.Errorf("line %d is %q, want it to begin with %q", i, got, want[i])
		}
	}
	if !strings.HasSuffix(lines[1], "1.5ms       shim") || !strings.HasSuffix(lines[2], "in-process") {
		t.Errorf("status printed\n%s\nwant the round trip, and who answered", out)
	}
}

// An error is too long for a column: a word stands there, and the error below.
func TestStatusKeepsErrorsOutOfTheTable(t *testing.T) {
	c := newCluster(t)
	c.member(1, c.shim, good())
	c.member(2, c.shim, good())
	out, err := c.status()
	if err != nil {
		t.Errorf("status = %v, want success: two of three serve", err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	third := c.address(3, c.etcd)
	if len(lines) != 5 || !strings.HasPrefix(strings.Join(strings.Fields(lines[3]), " "), third+" - unreachable unavailable -") {
		t.Fatalf("status printed\n%s\nwant four lines of a table, the last with reason unavailable, and one line below", out)
	}
	if !strings.HasPrefix(lines[4], third+": ") || !strings.Contains(lines[4], "refused") {
		t.Errorf("below the table stands %q, want the endpoint and its error", lines[4])
	}
}

func TestStatusInJSON(t *testing.T) {
	c := newCluster(t)
	c.member(1, c.shim, good())
	c.member(2, c.shim, good())
	out, err := c.status("-w", "json")
	if err != nil {
		t.Errorf("status = %v, want success: two of three serve", err)
	}
	var got statusJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("status printed %q: %v", out, err)
	}
	if got.Leader != "a2" || got.Term != 7 || got.Serving != 2 || got.Majority != 2 || len(got.Endpoints) != 3 {
		t.Errorf("status = %+v, want leader a2 at term 7, two serving, three endpoints", got)
	}
	if e := got.Endpoints[1]; e.Member != "a2" || !e.IsLeader || e.Cluster != "c0ffee" || e.RoundTripMS != 1.5 || e.Via != "shim" {
		t.Errorf("second endpoint = %+v, want the leader a2", e)
	}
	if e := got.Endpoints[2]; e.Status != "unreachable" || !strings.Contains(e.Error, "refused") || e.IsLeader {
		t.Errorf("third endpoint = %+v, want unreachable, refused", e)
	}
}

func TestStatusFailsWithoutAMajority(t *testing.T) {
	c := newCluster(t)
	c.member(1, c.shim, good())
	c.serve(2, c.etcd, health.NewServer()) // a stock etcd: answers, without our services
	out, err := c.status()
	if err == nil || !strings.Contains(err.Error(), "1 of 3 endpoints serving, a majority is 2") {
		t.Errorf("status = %v, want an error that counts", err)
	}
	for _, part := range []string{"no shim at " + c.address(2, c.shim), "unreachable"} {
		if !strings.Contains(out, part) {
			t.Errorf("status printed\n%s\nwant %q in it", out, part)
		}
	}
}

func TestStatusIsNotHeldUpByAPortThatSaysNothing(t *testing.T) {
	c := newCluster(t)
	silent, err := net.Listen("tcp", c.address(1, c.shim))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for host := 1; host <= 3; host++ {
		c.member(host, c.etcd, good())
	}
	began := time.Now()
	out, err := c.status("--command-timeout", "60s")
	if err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("status = %v after %v, want success at once: the shims in process answer\n%s", err, time.Since(began), out)
	}
}

func TestAMemberWithTwoAddressesCountsOnce(t *testing.T) {
	serving := func(member uint64) answer {
		return answer{via: viaShim, news: healthsvc.News{Status: healthsvc.StatusServing, Identity: healthsvc.Identity{Cluster: 1, Member: member, Leader: 1, Term: 2}}}
	}
	if c := judge([]answer{serving(1), serving(1), {}}); c.err() == nil || c.serving != 1 {
		t.Errorf("judge counts %d serving, error %v; want 1 and an error: it is one member", c.serving, c.err())
	}
	if c := judge([]answer{serving(1), serving(2), {}}); c.err() != nil || c.leader != 1 {
		t.Errorf("judge counts %d serving, leader %v, error %v; want 2, leader 1, none", c.serving, c.leader, c.err())
	}
	if c := judge([]answer{serving(1), {}, {}}); c.leader != 0 {
		t.Errorf("judge names leader %v on the word of one of three, want none", c.leader)
	}
}

func TestStatusShowsAMemberOfAnotherClusterAndDoesNotCountIt(t *testing.T) {
	c := newCluster(t)
	c.member(1, c.shim, good())
	lost := healthsvc.Report{Identity: healthsvc.Identity{Leader: 0xa2, Term: 7}, Reason: healthsvc.ReasonNoQuorum}
	c.member(2, c.shim, lost)
	other := good()
	other.Cluster, other.Leader, other.Term = 0xbeef, 0xa3, 9
	c.member(3, c.shim, other)
	out, errs, err := runWithErrors(t.Context(), c.asked()...)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 endpoints serving") {
		t.Errorf("status = %v, want an error that counts 1 of 2: the third is of another cluster", err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if got, want := strings.Join(strings.Fields(lines[len(lines)-1]), " "), c.address(3, c.etcd)+" a3 serving other-cluster a3 9"; !strings.HasPrefix(got, want) {
		t.Errorf("last line is %q, want it to begin with %q", got, want)
	}
	want := "quorumshim: --endpoints " + c.address(3, c.etcd) + ": a member of cluster beef, the others are of c0ffee: not counted; give its address in that cluster, or leave it out\n"
	if errs != want {
		t.Errorf("stderr is %q, want %q", errs, want)
	}
}

func TestOnlyVotersOfOneClusterMakeAMajority(t *testing.T) {
	of := func(cluster, member uint64, reason healthsvc.Reason) answer {
		status := healthsvc.StatusServing
		if reason != "" {
			status = healthsvc.StatusNotServing
		}
		return answer{via: viaShim, news: healthsvc.News{Status: status, Reason: reason, Identity: healthsvc.Identity{Cluster: cluster, Member: member, Leader: 1, Term: 2}}}
	}
	const lost, learner = healthsvc.ReasonNoQuorum, healthsvc.ReasonLearner
	tests := []struct {
		why     string
		answers []answer
		serving int
		voters  int
		foreign int
		leader  uint64
		ok      bool
	}{
		{"a foreign one does not help", []answer{of(1, 1, ""), of(1, 2, lost), of(9, 3, "")}, 1, 2, 1, 1, false},
		{"a foreign one does no harm", []answer{of(1, 1, ""), of(1, 2, ""), of(9, 3, lost)}, 2, 2, 1, 1, true},
		{"ids of another cluster mean nothing", []answer{of(1, 1, ""), of(1, 2, ""), of(9, 1, "")}, 2, 2, 1, 1, true},
		{"a learner has no vote", []answer{of(1, 1, ""), of(1, 2, ""), {}, of(1, 4, learner)}, 2, 3, 0, 1, true},
		{"learners do not make a majority impossible", []answer{of(1, 1, ""), of(1, 2, learner), of(1, 3, learner)}, 1, 1, 0, 1, true},
		{"a removed member has none either", []answer{of(1, 1, ""), of(1, 2, ""), {}, of(1, 4, healthsvc.ReasonRemoved)}, 2, 3, 0, 1, true},
		{"one that is silent may be a voter", []answer{of(1, 1, ""), {}, of(1, 2, ""), {}}, 2, 4, 0, 0, false},
		{"one of each: none has most", []answer{of(1, 1, ""), of(9, 2, "")}, 0, 0, 2, 0, false},
		{"who names no cluster is not foreign", []answer{of(1, 1, ""), of(1, 2, ""), of(0, 3, lost)}, 2, 3, 0, 1, true},
		{"nobody answers", []answer{{}, {}, {}}, 0, 3, 0, 0, false},
	}
	for _, tt := range tests {
		c := judge(tt.answers)
		if c.serving != tt.serving || c.voters != tt.voters || c.foreign != tt.foreign || uint64(c.leader) != tt.leader || (c.err() == nil) != tt.ok {
			t.Errorf("%s: got %d serving of %d voters, %d foreign, leader %v, error %v; want %d of %d, %d, %x, ok %v",
				tt.why, c.serving, c.voters, c.foreign, c.leader, c.err(), tt.serving, tt.voters, tt.foreign, tt.leader, tt.ok)
		}
		if len(c.warnings()) != tt.foreign {
			t.Errorf("%s: got warnings %q, want one for each foreign endpoint", tt.why, c.warnings())
		}
		for _, a := range tt.answers {
			if c.isLeader(a) && c.isForeign(a) {
				t.Errorf("%s: a member of another cluster is shown as the leader", tt.why)
			}
		}
	}
}
