package relay

import (
	"net"
)

// Door is one listener in front of one node.
type Door struct {
	network *Network
	to      string
	target  string
	dials   Dials
	lis     net.Listener
}

// Addr is the address to dial, host:port.
func (d *Door) Addr() string { return d.lis.Addr().String() }

// Close shuts the door for new connections. Those that are open stay.
func (d *Door) Close() error {
	d.network.shut(d)
	return d.lis.Close()
}

func (d *Door) accept() {
	for {
		conn, err := d.lis.Accept()
		if err != nil {
			return // closed: a loopback listener has no other lasting failure
		}
		f := &flow{network: d.network, near: conn, done: make(chan struct{})}
		if !d.network.enter(f) {
			conn.Close()
			return
		}
		d.network.wg.Go(func() {
			defer d.network.leave(f)
			f.run(d.to, d.target, d.dials)
		})
	}
}
