//go:build linux

package nethosts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// captureEvery is how often a capture takes what came. To be woken by each packet would cost
	// the machine many times as much.
	captureEvery = 50 * time.Millisecond
	// hurriedEvery is for the room that anybody may have.
	hurriedEvery = 5 * time.Millisecond
	// captureRoom is the kernel's room for what nobody has taken yet, in bytes: seconds of bulk,
	// for a harness that gets no processor.
	captureRoom = 64 << 20
	// packetRoom is more than an IPv4 packet can have; links carry what TCP sends in bulk as one.
	packetRoom = 1 << 16
)

// Capture takes the TCP segments that reach a port of a host from other hosts: those with a
// payload, and those that open or end a connection.
type Capture struct {
	host   *Host
	every  time.Duration
	stop   chan struct{}
	ended  chan struct{}
	ending sync.Once

	mu     sync.Mutex // held while segments are taken
	take   func(Segment)
	packet []byte
	fd     int // -1: closed
	lost   int
	err    error // the first that ended the reading
}

// Capture begins a capture, before anything that comes after the call. Segments are given to take
// one after the other, soon after they came; a payload belongs to the capture again when take
// returns. The capture ends with the host.
func (h *Host) Capture(port uint16, take func(Segment)) (*Capture, error) {
	return h.capture(port, captureRoom, take)
}

// capture is Capture with so much room, if the machine gives it.
func (h *Host) capture(port uint16, room int, take func(Segment)) (*Capture, error) {
	c := &Capture{host: h, stop: make(chan struct{}), ended: make(chan struct{}), take: take, packet: make([]byte, packetRoom)}
	h.starting.RLock() // the host does not end meanwhile
	defer h.starting.RUnlock()
	h.mu.Lock()
	gone := h.gone
	h.mu.Unlock()
	if gone {
		return nil, fmt.Errorf("nethosts: capture port %d of %s: the host was removed", port, h.name)
	}
	err := h.Do(func() (err error) {
		c.fd, err = packetSocket("eth0", port, room)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("nethosts: capture port %d of %s: %w", port, h.name, err)
	}
	given, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		given = 0 // nobody knows
	}
	c.every = pace(given)
	h.onRemove(c.Close)
	go c.run()
	return c, nil
}

// pace is how often what came is taken where the kernel has so much room. Without root that is twice
// net.core.rmem_max, which fills in a few milliseconds of bulk.
func pace(room int) time.Duration {
	if room < captureRoom {
		return hurriedEvery
	}
	return captureEvery
}

// packetSocket gets IPv4 packets for the port that come in by a link of the calling thread's
// network.
func packetSocket(name string, port uint16, room int) (fd int, err error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return -1, fmt.Errorf("link %s: %w", name, err)
	}
	// Protocol 0: nothing comes before the filter is there.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("a packet socket: %w", err)
	}
	if err := preparePacketSocket(fd, link.Index, port, room); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func preparePacketSocket(fd, link int, port uint16, room int) error {
	filter, err := segmentFilter(port)
	if err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return fmt.Errorf("its filter: %w", err)
	}
	// Saves the filter a run for each packet that leaves; kernels before 4.20 cannot.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room) != nil {
		// Not allowed without root: as much as the machine gives to anybody.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, room)
	}
	ipv4 := binary.NativeEndian.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff}) // in network order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ipv4, Ifindex: link}); err != nil {
		return fmt.Errorf("bind it to the link: %w", err)
	}
	return nil
}

func (c *Capture) run() {
	defer close(c.ended)
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			c.Sync()
		}
	}
}

// Sync returns when all that came before the call was taken.
func (c *Capture) Sync() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
}

func (c *Capture) drain() {
	for c.fd >= 0 && c.err == nil {
		n, err := unix.Read(c.fd, c.packet)
		switch {
		case err == unix.EAGAIN:
			return
		case err == unix.EINTR, err == unix.ENETDOWN: // the link goes when its host does
		case err != nil:
			c.err = fmt.Errorf("nethosts: capture at %s: %w", c.host.name, err)
		default:
			s, ok := parseSegment(c.packet[:n])
			if !ok {
				c.lost++
				continue
			}
			c.take(s)
		}
	}
}

// Lost is how many segments came and were not taken, because there was no room for them or they
// were damaged, and why the capture ended early, if it did.
func (c *Capture) Lost() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countLost()
	return c.lost, c.err
}

// countLost adds the kernel's number, which begins again with each reading of it.
func (c *Capture) countLost() {
	if c.fd < 0 {
		return
	}
	stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		c.err = errors.Join(c.err, fmt.Errorf("nethosts: what a capture at %s lost: %w", c.host.name, err))
		return
	}
	c.lost += int(stats.Drops)
}

// Close takes what came and ends the capture. Closing it again does nothing.
func (c *Capture) Close() (err error) {
	c.ending.Do(func() {
		close(c.stop)
		<-c.ended
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drain()
		c.countLost()
		err = unix.Close(c.fd)
		c.fd, c.packet = -1, nil
	})
	return err
}
