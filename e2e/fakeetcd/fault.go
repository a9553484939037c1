package fakeetcd

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CutPeers drops the member's traffic with the others, both ways; its clients stay. Linearizable
// reads, proposals and forwarded keepalives hang, watches fall silent, everything local answers.
func (m *Member) CutPeers() { m.c.change(func() { m.node().cut = true }) }

// MutePeers loses what the member sends to the others: it still hears the leader, so it names one
// for ever.
func (m *Member) MutePeers() { m.c.change(func() { m.node().mute = true }) }

// StallDisk stops the raft loop: leader, term and status stay at their last values, and a leader
// goes on acknowledging keepalives.
func (m *Member) StallDisk() { m.c.change(func() { m.node().stalled = true }) }

// Heal undoes CutPeers, MutePeers and StallDisk. The member takes part again after Options.Rejoin.
func (m *Member) Heal() {
	m.c.change(func() {
		n := m.node()
		n.cut, n.mute, n.stalled = false, false, false
		m.comeBack()
	})
}

// comeBack starts the time that a returning member needs. c.mu is held.
func (m *Member) comeBack() { m.node().back = time.Now().Add(m.c.opts.Rejoin) }

// Freeze stops etcd and the shim as SIGSTOP on both would: connections are accepted, nothing is
// ever answered. Thaw undoes it.
func (m *Member) Freeze() {
	m.FreezeShim()
	m.FreezeEtcd()
}

// FreezeEtcd stops etcd alone: a sidecar goes on, and reports it unreachable.
func (m *Member) FreezeEtcd() {
	m.etcd.process.close()
	m.c.change(func() { m.node().frozen = true })
}

// FreezeShim stops the sidecar alone: its port accepts and never answers.
func (m *Member) FreezeShim() { m.beside.process.close() }

// Thaw undoes Freeze, FreezeEtcd and FreezeShim.
func (m *Member) Thaw() {
	m.beside.process.open()
	m.etcd.process.open()
	m.c.change(func() {
		if m.node().frozen {
			m.node().frozen = false
			m.comeBack()
		}
	})
}

// CutClient loses the bytes between all clients and the member's host, both ways, on existing
// connections and new ones: dialling hangs. HealClient delivers what was lost, as TCP would.
func (m *Member) CutClient() { m.link.close() }

// HealClient undoes CutClient.
func (m *Member) HealClient() { m.link.open() }

// Kill ends etcd: connections are reset, new ones refused. An in-process shim dies with it.
func (m *Member) Kill() {
	m.c.change(func() { m.node().killed = true })
	m.halt()
}

// Restart starts etcd again after Kill. What it had applied is kept, tokens are not.
func (m *Member) Restart() {
	m.halt()
	m.c.change(func() {
		m.node().killed = false
		m.comeBack()
		clear(m.tokens)
	})
	m.start()
}

// SetLearner makes the member a learner, or a voter again.
func (m *Member) SetLearner(learner bool) { m.c.change(func() { m.node().learner = learner }) }

// Remove takes the member out of the cluster, for good. Its ports go on answering.
func (m *Member) Remove() { m.c.change(func() { m.node().removed = true }) }

// SetCluster makes the member say that it belongs to another cluster.
func (m *Member) SetCluster(id uint64) { m.c.change(func() { m.cluster = id }) }

// Advertise sets the client URLs under which the member list names the member.
func (m *Member) Advertise(urls ...string) { m.c.change(func() { m.urls = urls }) }

// SetLatency makes every unary call on etcd's port, and every keepalive, take that much longer.
func (m *Member) SetLatency(d time.Duration) { m.c.change(func() { m.latency = d }) }

// SetDiskLatency makes what needs consensus take that much longer; what is local stays fast.
func (m *Member) SetDiskLatency(d time.Duration) { m.c.change(func() { m.disk = d }) }

// rejection is what a member answers instead of working.
type rejection struct {
	code    codes.Code
	message string
	methods []string // empty: all
}

// Reject makes the member answer these methods (named as for [Cluster.Requests]; none: all on
// etcd's port) with an error. codes.OK undoes it.
func (m *Member) Reject(code codes.Code, message string, methods ...string) {
	m.c.change(func() {
		m.rejects = &rejection{code: code, message: message, methods: methods}
		if code == codes.OK {
			m.rejects = nil
		}
	})
}

// RefuseWatches makes the member answer each creation of a watch with a create and a cancel in one,
// and then end the whole stream with an error. codes.OK undoes it.
func (m *Member) RefuseWatches(code codes.Code, message string) {
	m.c.change(func() {
		m.refusal = status.New(code, message)
		if code == codes.OK {
			m.refusal = nil
		}
	})
}

// DropAnswer makes the member do what these methods ask for and never answer. No method: all
// answers are given again.
func (m *Member) DropAnswer(methods ...string) { m.setMethods(m.drops, methods) }

// BreakAnswer makes the member do what the next call of these methods asks for, and then reset all
// connections instead of answering.
func (m *Member) BreakAnswer(methods ...string) { m.setMethods(m.breaks, methods) }

func (m *Member) setMethods(set map[string]bool, methods []string) {
	m.c.change(func() {
		if len(methods) == 0 {
			clear(set)
		}
		for _, method := range methods {
			set[method] = true
		}
	})
}

// EndStreams ends the open streams of these methods (named as for [Cluster.Requests]; none: all)
// with an error.
func (m *Member) EndStreams(code codes.Code, message string, methods ...string) {
	m.c.change(func() {
		m.endStreams(status.Error(code, message), func(s *openStream) bool {
			return len(methods) == 0 || slices.ContainsFunc(methods, func(name string) bool { return named(s.method, name) })
		})
	})
}

// ResetConnections closes every connection on etcd's port; the member goes on.
func (m *Member) ResetConnections() { m.etcd.reset() }
