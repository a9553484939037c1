package cluster

import (
	"fmt"
	"time"

	"github.com/quorumwise/quorumwise/e2e/relay"
)

// Way is a direction as seen from a member.
type Way int

// The two ways.
const (
	Out Way = iota // from the member to its peers
	In             // from its peers to the member
)

// String names the way.
func (w Way) String() string {
	if w == Out {
		return "out"
	}
	return "in"
}

// CutPeers loses all traffic between the member and its peers, both ways. Its
// client port stays open.
func (c *Cluster) CutPeers(m *Member) { c.network.Hold(c.peers(m, Out, In)...) }

// CutOneWay loses the traffic between the member and its peers that goes this way.
func (c *Cluster) CutOneWay(m *Member, way Way) { c.network.Hold(c.peers(m, way)...) }

// CutLink loses all traffic between two members.
func (c *Cluster) CutLink(a, b *Member) {
	c.network.Hold(relay.Direction{From: a.name, To: b.name}, relay.Direction{From: b.name, To: a.name})
}

// DelayPeers makes all that the member exchanges with its peers late by d, in
// each direction; 0 ends it.
func (c *Cluster) DelayPeers(m *Member, d time.Duration) {
	c.network.Delay(d, c.peers(m, Out, In)...)
}

// CutView loses all traffic between one view's application and one member: its
// client port and the shim beside it.
func (c *Cluster) CutView(v *View, m *Member) {
	c.network.Hold(v.directions(m)...)
}

// Freeze makes a member look stopped (SIGSTOP): its peers, every view and the shim
// beside it connect to it and never hear an answer. Only the member's own ports,
// which no view uses, still work.
func (c *Cluster) Freeze(m *Member) {
	ds := c.peers(m, Out, In)
	for _, v := range c.allViews() {
		ds = append(ds, (&View{name: v}).directions(m)...)
	}
	c.network.Hold(ds...)
}

// Heal ends every fault of the network. Connections on which something was lost
// are reset, so that both ends connect again at once.
func (c *Cluster) Heal() { c.network.Heal() }

// Held lists the directions that carry nothing now. Nodes are named as members and
// views are.
func (c *Cluster) Held() []relay.Direction { return c.network.Held() }

// Faults lists what is held now, one line for each direction.
func (c *Cluster) Faults() []string {
	var lines []string
	for _, d := range c.network.Held() {
		lines = append(lines, fmt.Sprint(d))
	}
	return lines
}

func (c *Cluster) peers(m *Member, ways ...Way) []relay.Direction {
	var ds []relay.Direction
	for _, o := range c.others(m) {
		for _, way := range ways {
			if way == Out {
				ds = append(ds, relay.Direction{From: m.name, To: o.name})
			} else {
				ds = append(ds, relay.Direction{From: o.name, To: m.name})
			}
		}
	}
	return ds
}

func (c *Cluster) allPeers() []relay.Direction {
	var ds []relay.Direction
	for _, m := range c.members {
		ds = append(ds, c.peers(m, Out)...)
	}
	return ds
}
