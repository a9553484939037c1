package cluster

import (
	"fmt"

	"github.com/quorumwise/quorumwise/e2e/relay"
)

// View is one application's way to the members.
type View struct {
	name      string
	endpoints []string          // client doors, in order of the members
	members   map[string]string // client door to member
	doors     map[string]string // member to client door
	shims     map[string]string // client door to shim door
}

// View opens doors of their own for one application. The name is used in faults
// and must be new.
func (c *Cluster) View(name string) (*View, error) {
	c.mu.Lock()
	c.views = append(c.views, name)
	c.mu.Unlock()
	v := &View{name: name, members: make(map[string]string), doors: make(map[string]string), shims: make(map[string]string)}
	for _, m := range c.members {
		door, err := c.network.Listen(m.name, m.clientAddr, relay.From(name))
		if err != nil {
			return nil, fmt.Errorf("cluster: view %s: %w", name, err)
		}
		v.endpoints = append(v.endpoints, door.Addr())
		v.members[door.Addr()] = m.name
		v.doors[m.name] = door.Addr()
		if m.ShimAddr() == "" {
			continue
		}
		shim, err := c.network.Listen(m.name, m.shimAddr, relay.From(name))
		if err != nil {
			return nil, fmt.Errorf("cluster: view %s: %w", name, err)
		}
		v.shims[door.Addr()] = shim.Addr()
	}
	return v, nil
}

// Name is the view's name.
func (v *View) Name() string { return v.name }

// Endpoints are the view's doors to the members' client ports, m1 first.
func (v *View) Endpoints() []string { return append([]string(nil), v.endpoints...) }

// Endpoint is the view's door to one member.
func (v *View) Endpoint(m *Member) string { return v.doors[m.name] }

// MemberAt names the member behind a door of the view; "" if it is none.
func (v *View) MemberAt(endpoint string) string { return v.members[endpoint] }

// Shim is the view's door to the shim beside the member behind an endpoint; "" if
// none stands there. It fits client.Health.ShimAddress.
func (v *View) Shim(endpoint string) string { return v.shims[endpoint] }

func (v *View) directions(m *Member) []relay.Direction {
	return []relay.Direction{{From: v.name, To: m.name}, {From: m.name, To: v.name}}
}

func (c *Cluster) allViews() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.views...)
}
