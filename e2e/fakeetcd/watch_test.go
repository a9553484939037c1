package fakeetcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// seen returns what has arrived on a watch by now, without waiting for more.
func seen(wch clientv3.WatchChan) []string {
	synctest.Wait()
	got := []string{}
	for {
		select {
		case resp, ok := <-wch:
			if !ok {
				return append(got, "closed")
			}
			if err := resp.Err(); err != nil {
				got = append(got, err.Error())
			}
			for _, e := range resp.Events {
				got = append(got, fmt.Sprintf("%s %s=%s", e.Type, e.Kv.Key, e.Kv.Value))
			}
			synctest.Wait()
		default:
			return got
		}
	}
}

func expect(t *testing.T, wch clientv3.WatchChan, why string, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, seen(wch)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

func TestWatchOnACutMemberIsSilentAndCatchesUp(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		m := c.Member(1)
		wch := only(t, c, m).Watch(t.Context(), "k", clientv3.WithPrefix())
		synctest.Wait()
		c.Put("k1", "a")
		expect(t, wch, "before the cut", "PUT k1=a")
		m.CutPeers()
		for i := range 10 {
			c.Put("k2", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		expect(t, wch, "during the cut: the official client hears nothing and is told nothing")
		if n := m.Streams("Watch"); n != 1 {
			t.Errorf("%d watch streams open on the cut member, want 1", n)
		}
		elsewhere := only(t, c, c.Member(2)).Watch(t.Context(), "k2", clientv3.WithRev(3))
		want := []string{}
		for i := range 10 {
			want = append(want, fmt.Sprintf("PUT k2=%d", i))
		}
		expect(t, elsewhere, "reopened elsewhere from the next revision: every event once", want...)
		m.Heal()
		time.Sleep(time.Second)
		expect(t, wch, "after the heal it delivers what it missed", want...)
	})
}

func TestWatchThatRequiresALeaderEndsAboutFourSecondsAfterTheCut(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		cli := only(t, c, c.Member(1))
		wch := cli.Watch(clientv3.WithRequireLeader(t.Context()), "k")
		synctest.Wait()
		c.Member(1).CutPeers()
		began := time.Now()
		var resp clientv3.WatchResponse
		select {
		case resp = <-wch:
		case <-time.After(time.Minute):
		}
		if took := time.Since(began); !errors.Is(resp.Err(), rpctypes.ErrNoLeader) || took < 3400*time.Millisecond || took > 4400*time.Millisecond {
			t.Errorf("ended after %v with %v, want %v after 3.4 to 4.4 s as measured on etcd", took, resp.Err(), rpctypes.ErrNoLeader)
		}
	})
}

func TestWatchFollowsAMemberThatIsKilled(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		wch := cli.Watch(t.Context(), "k")
		synctest.Wait()
		for i := range 3 {
			c.Member(i).Kill()
			c.Put("k", fmt.Sprint(i))
			time.Sleep(time.Second)
			c.Member(i).Restart()
			time.Sleep(10 * time.Second)
		}
		expect(t, wch, "every event once while each member was killed in turn", "PUT k=0", "PUT k=1", "PUT k=2")
	})
}

func TestWatchOptions(t *testing.T) {
	inBubble(t, Options{Progress: time.Minute}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		c.Put("k", "1")
		c.Put("k", "2")
		fromStart := cli.Watch(t.Context(), "k", clientv3.WithRev(1), clientv3.WithPrevKV())
		deletes := cli.Watch(t.Context(), "k", clientv3.WithFilterPut())
		other := cli.Watch(t.Context(), "x", clientv3.WithProgressNotify())
		synctest.Wait()
		first := <-fromStart
		if len(first.Events) != 2 || first.Events[0].PrevKv != nil || string(first.Events[1].PrevKv.GetValue()) != "1" {
			t.Errorf("history with previous values: got %v", first.Events)
		}
		if _, err := cli.Delete(soon(t), "k"); err != nil {
			t.Fatal(err)
		}
		expect(t, fromStart, "a delete", "DELETE k=")
		expect(t, deletes, "only deletes", "DELETE k=")
		began := time.Now()
		if resp := <-other; !resp.IsProgressNotify() || resp.Header.Revision != c.Revision() || time.Since(began) != time.Minute {
			t.Errorf("progress after %v: %v, want revision %d after a minute", time.Since(began), resp, c.Revision())
		}
		if err := cli.RequestProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		if resp := <-other; !resp.IsProgressNotify() {
			t.Errorf("progress on demand: got %v", resp)
		}
	})
}

func TestWatchFromACompactedRevisionIsCancelled(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		for i := range 5 {
			c.Put("k", fmt.Sprint(i))
		}
		if _, err := cli.Compact(soon(t), 5); err != nil {
			t.Fatal(err)
		}
		resp := <-cli.Watch(t.Context(), "k", clientv3.WithRev(2))
		if !errors.Is(resp.Err(), rpctypes.ErrCompacted) || resp.CompactRevision != 5 {
			t.Errorf("got %v at %d, want %v at 5", resp.Err(), resp.CompactRevision, rpctypes.ErrCompacted)
		}
	})
}

func TestWatchesAreCancelledOneByOne(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		gone, kept := cli.Watch(ctx, "k"), cli.Watch(t.Context(), "k")
		synctest.Wait()
		cancel()
		expect(t, gone, "cancelled", "closed")
		c.Put("k", "v")
		expect(t, kept, "the other watch of the stream goes on", "PUT k=v")
		creates := 0
		for _, r := range c.Requests("Watch") {
			if r.Message != nil {
				creates++
			}
		}
		if creates != 2 {
			t.Errorf("%d watches were asked for, want 2", creates)
		}
	})
}
