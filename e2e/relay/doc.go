// Package relay carries TCP connections between named nodes and takes the
// network between them away on request, one direction at a time.
//
// A [Network] knows nodes by name only. [Network.Listen] opens a door to one
// node: whatever connects there is carried to that node's real address, on
// behalf of the node that dialled. Who dialled is either fixed ([From]: one door
// for each client) or read from the connection ([FromServerName]: the members of
// a cluster share one advertised address, so each of them names itself in the
// TLS hello).
//
// A direction is bytes travelling from X to Y, on any connection between the
// two, whichever side dialled. [Network.Hold] loses a direction the way a
// dropping firewall does: nothing is refused and nothing is closed, the bytes
// (and the end of a stream) just do not arrive, and new connections are accepted
// and stay mute. [Network.Heal] gives it back. A connection that had something
// held is reset at that moment instead of being resumed: its owner reconnects at
// once, where a resumed one would deliver, in an order that a real network does
// not promise, what TCP would have retransmitted seconds later. Connections that
// had nothing to carry meanwhile stay as they are.
//
// All methods may be called concurrently. A write that had already passed its
// check when Hold was called still arrives, some microseconds later. The relay
// buffers up to 64 chunks of 16 KiB in each direction and then stops reading, so
// that a held or delayed direction pushes back on its sender as TCP does.
package relay
