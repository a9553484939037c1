//go:build linux

package realetcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// from makes connections come from a host, which faults touch.
func from(host *nethosts.Host) grpc.DialOption {
	return grpc.WithContextDialer(func(_ context.Context, address string) (conn net.Conn, err error) {
		return conn, errors.Join(host.Do(func() error { conn, err = net.DialTimeout("tcp", address, 20*time.Second); return err }))
	})
}

func clientOn(t *testing.T, host *nethosts.Host, m *Member) *clientv3.Client {
	t.Helper()
	cli := must1(clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint()}, DialOptions: []grpc.DialOption{from(host)}}))(t)
	t.Cleanup(func() { cli.Close() })
	return cli
}

// Servers that count nothing: what reaches them is counted on their hosts.
func TestMutationsAreCountedWhereTheyReachPlainMembers(t *testing.T) {
	t.Parallel()
	ctx := within(t, 60*time.Second)
	c := started(ctx, t, Config{})
	m1, m2, m3 := c.Member("m1"), c.Member("m2"), c.Member("m3")
	host := must1(c.cfg.Lab.Host("client"))(t)
	want := make(map[string]int)
	again := func(cli *clientv3.Client, value string, more ...clientv3.Op) {
		t.Helper()
		ops := append([]clientv3.Op{clientv3.OpPut("k", value)}, more...)
		must(t, delivered(func() (err error) {
			if len(ops) == 1 {
				_, err = cli.Do(ctx, ops[0])
			} else {
				_, err = cli.Txn(ctx).Then(ops...).Commit()
			}
			return err
		}, settles(ctx, c)))
		want[value]++
	}
	write := func(m *Member, cli *clientv3.Client, phase string) {
		t.Helper()
		for i := range 100 {
			v := fmt.Sprint(phase, "-", m.name, "-", i)
			if i%10 == 0 { // a transaction that writes it twice
				again(cli, v, clientv3.OpPut("l", v))
			} else {
				again(cli, v)
			}
		}
	}
	on1, on2, on3 := clientOn(t, host, m1), clientOn(t, host, m2), clientOn(t, host, m3)
	write(m1, on1, "begin")
	write(m2, on2, "begin")
	write(m3, on3, "begin")
	again(on1, "twice at one")
	again(on1, "twice at one")
	again(on1, "twice at two")
	again(on2, "twice at two")
	arrivedAre(t, c, want)

	must(t, m1.Kill())
	must(t, m1.Start(ctx))
	must(t, c.Settled(ctx, 200*time.Millisecond)) // a write without a leader would fail
	write(m1, on1, "killed")
	again(on1, "begin-m1-7") // a value from before the kill
	must(t, m2.Restart(ctx, ""))
	must(t, c.Settled(ctx, 200*time.Millisecond))
	write(m2, on2, "restarted")
	must(t, c.Remove(ctx, m3))
	must(t, c.Settled(ctx, 200*time.Millisecond))
	arrivedAre(t, c, want)

	// Segments are lost, sent again and out of order, and messages take many of them.
	lossy := must1(c.cfg.Lab.Lose(0.05, nethosts.Between(host, m2.Host())...))(t)
	for i := range 20 {
		again(on2, fmt.Sprint("lossy-", i), clientv3.OpPut("ballast", strings.Repeat("x", 200<<10)))
	}
	must(t, lossy.Lift())

	// A member that counts itself for a while counts once.
	must(t, m1.UseShim(ShimInProcess))
	must(t, m1.Restart(ctx, ""))
	must(t, c.Settled(ctx, 200*time.Millisecond))
	write(m1, on1, "in process")
	must(t, m1.UseShim(ShimNone))
	must(t, m1.Restart(ctx, ""))
	must(t, c.Settled(ctx, 200*time.Millisecond))
	write(m1, on1, "plain again")
	arrivedAre(t, c, want)
}

// arrivedAre checks that the counts are exact and complete.
func arrivedAre(t *testing.T, c *Cluster, want map[string]int) {
	t.Helper()
	arrived := must1(c.Arrived())(t)
	for v, n := range want {
		if got := arrived.Counts[v]; got != n {
			t.Errorf("%q arrived %d times; want %d", v, got, n)
		}
	}
	for v, n := range arrived.Counts {
		if want[v] == 0 {
			t.Errorf("%q arrived %d times; nobody sent it", v, n)
		}
	}
	if len(arrived.Gaps) > 0 {
		t.Errorf("gaps %q; want none", arrived.Gaps)
	}
}

// What comes in by a connection that nobody can read may be a mutation.
func TestConnectionThatCannotBeReadIsAGapOfItsMember(t *testing.T) {
	t.Parallel()
	ctx := within(t, 40*time.Second)
	c := started(ctx, t, Config{})
	m2 := c.Member("m2")
	host := must1(c.cfg.Lab.Host("client"))(t)
	must1(clientOn(t, host, m2).Put(ctx, "k", "v"))(t)
	arrivedAre(t, c, map[string]int{"v": 1})

	var conn net.Conn
	must(t, host.Do(func() (err error) { conn, err = net.DialTimeout("tcp", m2.Endpoint(), 10*time.Second); return err }))
	defer conn.Close()
	must1(conn.Write([]byte("\x16\x03")))(t) // as TLS begins
	want := fmt.Sprintf("the count at m2 is incomplete: a connection from %s cannot be followed: it speaks TLS", conn.LocalAddr())
	var gaps []string
	for deadline := time.Now().Add(10 * time.Second); len(gaps) == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		gaps = must1(c.Arrived())(t).Gaps
	}
	if !slices.Equal(gaps, []string{want}) {
		t.Errorf("gaps %q; want just %q", gaps, want)
	}
	if n := must1(c.Arrived())(t).Counts["v"]; n != 1 {
		t.Errorf("v arrived %d times; want what was counted still", n)
	}
}

// A server that stops, and that its client does not hear, refuses what comes after five seconds and
// ends after seven. gRPC sends again what was refused: it comes twice and is processed once.
func TestRefusedMutationComesTwiceAndTheTraceTellsIt(t *testing.T) {
	t.Parallel()
	ctx := within(t, 60*time.Second)
	c := started(ctx, t, Config{Members: 1})
	host := must1(c.cfg.Lab.Host("client"))(t)
	trace := new(workload.Trace)
	conn := must1(grpc.NewClient("passthrough:///"+c.Member("m1").Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()), from(host), trace.DialOption()))(t)
	defer conn.Close()

	const tries = 5 // a busy machine may miss the two seconds
	want, done, again := make(map[string]int), 0, 0
	for i := 0; i < tries && again == 0; i++ {
		value := fmt.Sprint("v", i)
		err := putWhileItStops(ctx, t, c, host, conn, value)
		if err == nil {
			done++
		}
		for _, a := range trace.Attempts(func(a workload.Attempt) bool { return slices.Contains(a.Values, value) }) {
			if a.Again {
				again++
			}
		}
		want[value] = 1 + again
		t.Logf("%s was sent again %d times (%v)", value, again, err)
	}
	if again == 0 {
		t.Errorf("none of %d mutations was refused: nothing is shown", tries)
	}
	arrivedAre(t, c, want)
	got := must1(pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte("k")}))(t)
	written := 0
	for _, kv := range got.Kvs {
		written = int(kv.Version)
	}
	if written < done || written > len(want) {
		t.Errorf("the store was written %d times; want each of %d values once, of which %d were acknowledged", written, len(want), done)
	}
}

// putWhileItStops puts a value on the only member when it refuses what comes, and returns when the
// member serves again.
func putWhileItStops(ctx context.Context, t *testing.T, c *Cluster, host *nethosts.Host, conn *grpc.ClientConn, value string) error {
	t.Helper()
	m := c.Member("m1")
	watching, end := context.WithCancel(ctx)
	defer end()
	watch := must1(pb.NewWatchClient(conn).Watch(watching, grpc.WaitForReady(true)))(t) // for as long as it is open, the server waits
	must(t, watch.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("k")}}}))
	must1(watch.Recv())(t)

	deaf := must1(c.cfg.Lab.Drop(nethosts.Flow{From: m.Host(), To: host}))(t)
	stopped := make(chan error, 1)
	go func() { stopped <- m.Stop(ctx) }()
	time.Sleep(5800 * time.Millisecond)
	answered := make(chan error, 1)
	go func() {
		_, err := pb.NewKVClient(conn).Put(workload.AsUser(ctx), put(value), grpc.WaitForReady(true))
		answered <- err
	}()
	time.Sleep(300 * time.Millisecond)
	must(t, deaf.Lift())
	must(t, <-stopped)
	must(t, m.Start(ctx))
	return <-answered
}
