package fakeetcd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What etcd 3.7 does at its default election timeout of 1 s.
const (
	electionTimeout = time.Second
	requestTimeout  = 7 * time.Second // 5 s and two election timeouts
	// streamPatience is how long a member that knows no leader keeps a stream that requires one:
	// three checks, one a second.
	streamPatience = 2500 * time.Millisecond
)

// Shim says what kind of health shim a member has.
type Shim int

const (
	// ShimNone: a stock member; nothing listens on port 2378.
	ShimNone Shim = iota
	// ShimSidecar: a server of its own on port 2378.
	ShimSidecar
	// ShimInProcess: the services are answered on etcd's port.
	ShimInProcess
)

// Options configures a Cluster. The zero value works: stock members at etcd's default timing.
type Options struct {
	Shim  Shim         // of every member
	Shims map[int]Shim // of single members, by index; overrides Shim

	// Host names the host of a member; default fake-1, fake-2, ...
	Host func(index int) string

	// LeaderLoss is how long a member that hears no leader goes on naming the last one; default 1.5 s.
	LeaderLoss time.Duration
	// Election is how long after the leader lost its majority another one is elected; default
	// 1.5 s, negative: only by Elect.
	Election time.Duration
	// Rejoin is how long after a heal a member takes part again; default 100 ms.
	Rejoin time.Duration

	// ShimBad and ShimGood are how long after the loss and the return of quorum the shim says so;
	// defaults 250 ms and 300 ms. ShimBeat is how often it renews its report; default 100 ms.
	ShimBad, ShimGood, ShimBeat time.Duration

	// Progress is the interval of progress notifications on idle watches that ask for them; default 10 min.
	Progress time.Duration

	// User and Password switch authentication on: every call but health, status and member list
	// needs a token.
	User, Password string

	// Credentials returns what a member's ports speak TLS with; default plain text.
	Credentials func(index int) credentials.TransportCredentials
}

func (o *Options) fill() {
	if o.Host == nil {
		o.Host = func(index int) string { return fmt.Sprintf("fake-%d", index+1) }
	}
	for value, preset := range map[*time.Duration]time.Duration{
		&o.LeaderLoss: 1500 * time.Millisecond,
		&o.Election:   1500 * time.Millisecond,
		&o.Rejoin:     100 * time.Millisecond,
		&o.ShimBad:    250 * time.Millisecond,
		&o.ShimGood:   300 * time.Millisecond,
		&o.ShimBeat:   100 * time.Millisecond,
		&o.Progress:   10 * time.Minute,
	} {
		if *value == 0 {
			*value = preset
		}
	}
}

// security returns the server options for a member's ports.
func (o *Options) security(index int) grpc.ServerOption {
	if o.Credentials == nil {
		return grpc.EmptyServerOption{}
	}
	return grpc.Creds(o.Credentials(index))
}

func (o *Options) shim(index int) Shim {
	if s, ok := o.Shims[index]; ok {
		return s
	}
	return o.Shim
}

// Cluster is a fake etcd cluster. All methods may be called concurrently; none of them blocks for
// (virtual) time.
type Cluster struct {
	opts    Options
	members []*Member
	ports   map[string]*port // by address; never changes

	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup // the loop, the shims, the servers
	wake chan struct{}  // tells the loop that deadlines may have changed

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when anything below changes
	consensus *consensus
	store     *store
	lessor    *lessor
	index     uint64 // newest entry of the log
	alarms    []*pb.AlarmMember
	inherit   bool // proposals outlive the leader that they were forwarded to
	requests  []Request
	arrivals  map[string]int
	tokens    int       // how many were handed out
	settled   time.Time // up to when time has been taken into account
}

// New starts a cluster of n members, led by the first. Close ends it.
func New(n int, opts Options) *Cluster {
	opts.fill()
	c := &Cluster{
		opts: opts, ports: make(map[string]*port),
		stop: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{}),
		consensus: newConsensus(n, timing{loss: opts.LeaderLoss, election: opts.Election}),
		store:     newStore(), lessor: newLessor(), index: 8, arrivals: make(map[string]int),
	}
	for i := range n {
		m := newMember(c, i)
		c.members = append(c.members, m)
		c.ports[m.etcd.address], c.ports[m.beside.address] = m.etcd, m.beside
	}
	for _, m := range c.members {
		m.start()
		m.RestartShim()
	}
	c.wg.Go(c.run)
	return c
}

// Close ends every connection, server and goroutine of the cluster.
func (c *Cluster) Close() {
	c.once.Do(func() {
		close(c.stop)
		for _, m := range c.members {
			m.KillShim()
			m.halt()
		}
	})
	c.wg.Wait()
}

// Members returns the members in order.
func (c *Cluster) Members() []*Member { return c.members }

// Member returns the member with an index, counted from 0.
func (c *Cluster) Member(index int) *Member { return c.members[index] }

// Leader returns the member that leads the majority, nil while there is none.
func (c *Cluster) Leader() *Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.consensus.leads(time.Now()) {
		return nil
	}
	return c.members[c.consensus.leader]
}

// Term returns the newest raft term.
func (c *Cluster) Term() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consensus.term
}

// Revision returns the newest revision of the log.
func (c *Cluster) Revision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store.revision
}

// Endpoints returns the addresses of the members' etcd ports.
func (c *Cluster) Endpoints() []string {
	addresses := make([]string, len(c.members))
	for i, m := range c.members {
		addresses[i] = m.Address
	}
	return addresses
}

// DialOptions returns what makes a gRPC client find the members. A target's scheme must not look
// names up: clientv3's own does not, elsewhere use passthrough:///.
func (c *Cluster) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(c.Dial)}
}

// ClientConfig returns a configuration of the official client for all members.
func (c *Cluster) ClientConfig() clientv3.Config {
	return clientv3.Config{
		Endpoints: c.Endpoints(), DialOptions: c.DialOptions(), Logger: zap.NewNop(),
		Username: c.opts.User, Password: c.opts.Password,
	}
}

// Dial connects to the address of an etcd port or a shim.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	p := c.ports[address]
	if p == nil {
		return nil, fmt.Errorf("dial %s: no such host", address)
	}
	return p.dial(ctx)
}

// Elect takes the leader away for a time, then makes a member leader at the next term. It returns
// at once. Elect with no time is a leadership transfer.
func (c *Cluster) Elect(index int, without time.Duration) {
	now := time.Now()
	c.change(func() { c.consensus.schedule(index, now, now.Add(without)) })
}

// InheritProposals says what becomes of proposals in flight when the leader is lost: they had
// reached a majority, so the next leader commits them, or (the default) they are lost with it.
func (c *Cluster) InheritProposals(inherit bool) { c.change(func() { c.inherit = inherit }) }

// CutLink cuts the link between two members, both ways; HealLink undoes it.
func (c *Cluster) CutLink(a, b int) {
	c.change(func() {
		c.consensus.links[[2]int{a, b}] = true
		c.consensus.links[[2]int{b, a}] = true
	})
}

// HealLink undoes CutLink.
func (c *Cluster) HealLink(a, b int) {
	c.change(func() {
		delete(c.consensus.links, [2]int{a, b})
		delete(c.consensus.links, [2]int{b, a})
	})
}

// SetAlarm raises or clears an alarm on every member.
func (c *Cluster) SetAlarm(alarm pb.AlarmType, on bool) {
	c.change(func() {
		c.alarms = nil
		for _, m := range c.members {
			if on {
				c.alarms = append(c.alarms, &pb.AlarmMember{MemberID: m.ID, Alarm: alarm})
			}
		}
	})
}

// SetLatency makes every member slow: see [Member.SetLatency].
func (c *Cluster) SetLatency(d time.Duration) {
	for _, m := range c.members {
		m.SetLatency(d)
	}
}

// InvalidateTokens makes every member forget the authentication tokens that were handed out.
func (c *Cluster) InvalidateTokens() {
	c.change(func() {
		for _, m := range c.members {
			clear(m.tokens)
		}
	})
}

// Put writes a key as some other client would, past all members, and returns its revision.
func (c *Cluster) Put(key, value string) int64 {
	var revision int64
	c.change(func() {
		w := c.store.begin()
		w.put(key, []byte(value), 0)
		revision = w.end()
		c.index++
	})
	return revision
}

// Get reads the newest value of a key, past all members.
func (c *Cluster) Get(key string) (value string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kv := c.store.get(key, c.store.revision)
	return string(kv.GetValue()), kv != nil
}

// Lease returns how long a lease will live if it is not renewed; false: there is no such lease.
func (c *Cluster) Lease(id clientv3.LeaseID) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.lessor.grants[int64(id)]
	if g == nil {
		return 0, false
	}
	return time.Until(g.expiry), true
}

// change changes the state, draws the consequences, and tells everyone who waits.
func (c *Cluster) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	c.settle(time.Now())
}

// settle draws the consequences of a change or of time: elections, what members see, leases that
// are over, streams that required a leader. c.mu is held.
func (c *Cluster) settle(now time.Time) {
	c.settled = now
	if c.consensus.tick(now) {
		c.index++
		c.lessor.promote(now, electionTimeout)
	}
	if c.consensus.leads(now) {
		for _, id := range c.lessor.due(now) {
			delete(c.lessor.grants, id)
			c.store.revoke(id)
			c.index++
		}
	}
	for i, m := range c.members {
		n := &c.consensus.nodes[i]
		if c.consensus.live(i, now) {
			n.revision, n.index = c.store.revision, c.index
		}
		if !n.lost.IsZero() && !now.Before(n.lost.Add(streamPatience)) {
			m.endStreams(rpctypes.ErrGRPCNoLeader, func(s *openStream) bool { return s.leader })
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run settles whenever time alone changes something.
func (c *Cluster) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-c.wake:
		case <-timer.C:
			c.change(func() {})
			continue // settle woke us
		}
		if due := c.due(); due > 0 {
			timer.Reset(due)
		} else {
			timer.Stop()
		}
	}
}

// due returns how long until time alone changes something; 0: never.
func (c *Cluster) due() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.consensus.next(c.settled)
	if lease := c.lessor.next(c.settled); !lease.IsZero() && (next.IsZero() || lease.Before(next)) {
		next = lease
	}
	if next.IsZero() {
		return 0
	}
	return max(time.Until(next), 1)
}
