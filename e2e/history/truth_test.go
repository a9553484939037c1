package history

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test with the official client of a healthy cluster.
func inBubble(t *testing.T, test func(t *testing.T, cli *clientv3.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := fakeetcd.New(3, fakeetcd.Options{})
		defer c.Close()
		cli, err := clientv3.New(c.ClientConfig())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cli.Close() }()
		test(t, cli)
	})
}

// write makes some history and returns the revision before it and what ReadTruth should
// find below "a/".
func write(t *testing.T, cli *clientv3.Client) (before int64, want []Change) {
	t.Helper()
	ctx := t.Context()
	now, err := cli.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	r := now.Header.Revision
	for _, ops := range [][]clientv3.Op{
		{clientv3.OpPut("a/1", "one")},
		{clientv3.OpPut("b", "beside")},
		{clientv3.OpPut("a/1", "two"), clientv3.OpPut("b", "beside"), clientv3.OpPut("a/2", "three")},
		{clientv3.OpDelete("a/", clientv3.WithPrefix())},
		{clientv3.OpPut("b", "last")},
	} {
		if _, err := cli.Txn(ctx).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	one, two, three := "one", "two", "three"
	return r, []Change{
		{Revision: r + 1, Key: "a/1", Value: one, Create: r + 1, Version: 1},
		{Revision: r + 3, Key: "a/1", Value: two, Create: r + 1, Version: 2, Previous: &one},
		{Revision: r + 3, Key: "a/2", Value: three, Create: r + 3, Version: 1},
		{Revision: r + 4, Key: "a/1", Deleted: true, Previous: &two},
		{Revision: r + 4, Key: "a/2", Deleted: true, Previous: &three},
	}
}

func TestReadTruthReadsWholeTransactionsUpToNow(t *testing.T) {
	inBubble(t, func(t *testing.T, cli *clientv3.Client) {
		before, want := write(t, cli)
		got, err := ReadTruth(t.Context(), cli, "a/", before+1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Truth{From: before, Upto: before + 5, Changes: want}, got); diff != "" {
			t.Errorf("what every checker compares with is not what happened (-want +got):\n%s", diff)
		}
		later, err := ReadTruth(t.Context(), cli, "a/", before+4)
		if diff := cmp.Diff(Truth{From: before + 3, Upto: before + 5, Changes: want[3:]}, later); err != nil || diff != "" {
			t.Errorf("from a later revision: %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestReadTruthOfNothingIsEmpty(t *testing.T) {
	inBubble(t, func(t *testing.T, cli *clientv3.Client) {
		before, _ := write(t, cli)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, from := range []int64{before + 6, before + 60} {
			got, err := ReadTruth(ctx, cli, "a/", from)
			if err != nil || len(got.Changes) > 0 || got.From != from-1 {
				t.Errorf("from %d: %+v, %v, want nothing at once", from, got, err)
			}
		}
	})
}

func TestReadTruthSaysThatRevisionsAreCompacted(t *testing.T) {
	inBubble(t, func(t *testing.T, cli *clientv3.Client) {
		before, want := write(t, cli)
		if _, err := cli.Compact(t.Context(), before+2); err != nil {
			t.Fatal(err)
		}
		_, err := ReadTruth(t.Context(), cli, "a/", 0)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("%v, want %v: a truth with a hole makes every checker blind", err, rpctypes.ErrCompacted)
		}
		got, err := ReadTruth(t.Context(), cli, "a/", before+3)
		if diff := cmp.Diff(want[1:], got.Changes); err != nil || diff != "" {
			t.Errorf("what is left: %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestReadTruthEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, cli *clientv3.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := ReadTruth(ctx, cli, "a/", 0); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	})
}

func TestReaderRefusesHolesAndRepetitions(t *testing.T) {
	event := func(revision int64) *clientv3.Event {
		return &clientv3.Event{Type: mvccpb.Event_PUT, Kv: &mvccpb.KeyValue{Key: []byte("k"), ModRevision: revision}}
	}
	for _, c := range []struct {
		name    string
		answers [][]*clientv3.Event
		want    string
	}{
		{"whole", [][]*clientv3.Event{{event(5), event(5), event(6)}, {event(7)}}, ""},
		{"a hole", [][]*clientv3.Event{{event(5)}, {event(7)}}, "history: the store's history goes from revision 5 to 7"},
		{"a hole at the beginning", [][]*clientv3.Event{{event(6)}}, "history: the store's history goes from revision 4 to 6"},
		{"a hole inside", [][]*clientv3.Event{{event(5), event(7)}}, "history: the store's history goes from revision 5 to 7"},
		{"a repetition", [][]*clientv3.Event{{event(5)}, {event(5)}}, "history: the store's history goes from revision 5 to 5"},
		{"backwards", [][]*clientv3.Event{{event(5), event(6), event(5)}}, "history: the store's history goes from revision 6 to 5"},
	} {
		r := reader{next: 5, truth: Truth{From: 4, Upto: 9}}
		var err error
		for _, a := range c.answers {
			if err = r.take(a); err != nil {
				break
			}
		}
		if got := errText(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The whole way: a real client's watch, filed as an application does, is clean.
func TestStreamOfTheOfficialClientIsClean(t *testing.T) {
	inBubble(t, func(t *testing.T, cli *clientv3.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		now, err := cli.Get(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		s := Stream{Name: "w", Key: "a/", End: "a0", From: now.Header.Revision + 1, Puts: true, Deletes: true, PrevKV: true, Progress: true}
		ch := cli.Watch(ctx, s.Key, clientv3.WithRange(s.End), clientv3.WithRev(s.From), clientv3.WithPrevKV(), clientv3.WithProgressNotify())
		write(t, cli)
		for range 3 { // transactions that touch the range
			resp := <-ch
			r := Response{Revision: resp.Header.Revision}
			for _, ev := range resp.Events {
				r.Changes = append(r.Changes, changeOf(ev))
			}
			s.Responses = append(s.Responses, r)
			if r.Changes[len(r.Changes)-1].Deleted {
				break
			}
		}
		truth, err := ReadTruth(ctx, cli, "", s.From)
		if err != nil {
			t.Fatal(err)
		}
		s.Upto = truth.Upto
		judge(t, CheckStream(s, truth), "")
	})
}
