package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// soon bounds what should happen within an election or two, on a busy machine.
const soon = 30 * time.Second

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	began := time.Now()
	cfg.Dir = t.TempDir()
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(began))
	t.Cleanup(func() {
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("closed in %v", time.Since(began))
	})
	return c
}

func dial(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	cli, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	return cli
}

// read says whether a linearizable read through the endpoint completes in d.
func read(t *testing.T, cli *clientv3.Client, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	_, err := cli.Get(ctx, "k")
	return err
}

// comesTo waits until the member has quorum or not, as wanted, and says whether it came
// to that.
func comesTo(t *testing.T, m *Member, want bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	return poll(ctx, "proof", func() bool { return m.proves(ctx) == want }) == nil
}

func (c *Cluster) mustProve(t *testing.T, m *Member, want bool) {
	t.Helper()
	if !comesTo(t, m, want) {
		t.Fatalf("%s has quorum = %v, want %v, with %v held", m.name, !want, want, c.Faults())
	}
}

func TestFaultsOfTheNetwork(t *testing.T) {
	c := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	healed := func(t *testing.T) {
		t.Cleanup(func() {
			c.Heal()
			if err := c.Settled(ctx, 200*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		})
	}
	leader := func(t *testing.T) *Member {
		m, err := c.WaitLeader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	// A follower without quorum, the others with it.
	loses := func(t *testing.T, m *Member) {
		t.Helper()
		c.mustProve(t, m, false)
		for _, o := range c.others(m) {
			c.mustProve(t, o, true)
		}
		if err := read(t, dial(t, m.ClientAddr()), 300*time.Millisecond); err == nil {
			t.Errorf("a linearizable read through %s completed; want none without quorum", m.name)
		}
	}

	t.Run("a follower cut from its peers loses its quorum", func(t *testing.T) {
		healed(t)
		leader(t)
		m := c.Followers()[0]
		c.CutPeers(m)
		loses(t, m)
	})
	t.Run("a leader cut from its peers is replaced", func(t *testing.T) {
		healed(t)
		m := leader(t)
		c.CutPeers(m)
		if _, err := c.WaitOtherLeader(ctx, m); err != nil {
			t.Fatal(err)
		}
		loses(t, m)
	})
	for _, way := range []Way{Out, In} {
		t.Run("a follower cut one way loses its quorum: "+way.String(), func(t *testing.T) {
			healed(t)
			leader(t)
			m := c.Followers()[0]
			c.CutOneWay(m, way)
			loses(t, m)
		})
	}
	t.Run("only the link to the leader cut", func(t *testing.T) {
		healed(t)
		for try := 1; ; try++ {
			l := leader(t)
			m := c.Followers()[0]
			c.CutLink(l, m)
			lost := comesTo(t, m, false)
			if lost {
				loses(t, m)
			}
			switch got := leader(t); {
			case got == l && lost:
				return
			case got == l:
				t.Fatalf("%s has quorum without its link to leader %s", m.name, l.name)
			case try == 3: // a busy machine may topple a leader, but not each time
				t.Fatalf("leader %s; want %s still: the third member hears it", got.name, l.name)
			}
			c.Heal()
		}
	})
	t.Run("a cut view keeps the member's quorum", func(t *testing.T) {
		healed(t)
		m := leader(t)
		v, err := c.View("cut-view")
		if err != nil {
			t.Fatal(err)
		}
		cli := dial(t, v.Endpoint(m))
		if err := read(t, cli, soon); err != nil {
			t.Fatalf("before the cut: %v", err)
		}
		c.CutView(v, m)
		if err := read(t, cli, 300*time.Millisecond); err == nil {
			t.Error("a read through the cut view completed")
		}
		c.mustProve(t, m, true)
		c.Heal()
		if err := read(t, cli, soon); err != nil {
			t.Errorf("after the heal: %v", err)
		}
	})
	t.Run("a frozen member accepts and is mute to all", func(t *testing.T) {
		healed(t)
		m := leader(t)
		v, err := c.View("frozen-view")
		if err != nil {
			t.Fatal(err)
		}
		c.Freeze(m)
		if err := read(t, dial(t, v.Endpoint(m)), 300*time.Millisecond); err == nil {
			t.Error("a read through the frozen member completed")
		}
		if _, err := c.WaitOtherLeader(ctx, m); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a transfer moves the leader and costs nobody the quorum", func(t *testing.T) {
		leader(t)
		to := c.Followers()[0]
		if err := c.TransferLeader(ctx, to); err != nil {
			t.Fatal(err)
		}
		if got := c.Leader(); got != to {
			t.Errorf("leader %v; want %s", got, to.name)
		}
	})
	t.Run("a forced election raises the term", func(t *testing.T) {
		leader(t)
		_, before := c.leader()
		if _, err := c.ForceElection(ctx); err != nil {
			t.Fatal(err)
		}
		leader(t)
		if _, after := c.leader(); after <= before {
			t.Errorf("term %d after %d; want a later one", after, before)
		}
	})
	t.Run("a stopped member comes back on its addresses with its data", func(t *testing.T) {
		healed(t)
		m := leader(t)
		addr, id := m.ClientAddr(), m.ID()
		if err := m.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.WaitOtherLeader(ctx, m); err != nil {
			t.Fatal(err)
		}
		if err := m.Start(ctx); err != nil {
			t.Fatal(err)
		}
		c.mustProve(t, m, true)
		if m.ClientAddr() != addr || m.ID() != id {
			t.Errorf("came back as %x on %s; want %x on %s", m.ID(), m.ClientAddr(), id, addr)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{Members: 10}, "Members = 10"},
		{Config{Election: time.Second, Heartbeat: 500 * time.Millisecond}, "Heartbeat = 500ms"},
		{Config{Shim: 7}, "Shim(7)"},
	} {
		if _, err := Start(t.Context(), tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Start(%+v) = %v; want an error with %q", tc.cfg, err, tc.want)
		}
	}
}
