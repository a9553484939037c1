//go:build linux

package nethosts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// hop is the way that packets take which are to be held: the switch sends them
// to a TAP device, and what is written to that enters the switch as if it came
// from the host. Two goroutines: one takes frames in, one lets them out.
type hop struct {
	tap  *os.File
	wake chan struct{} // holds one: there is something new to let out
	stop chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	pipes map[way]*pipe
	loose [][]byte // of pipes that were taken away
}

// way is a flow as a packet shows it.
type way struct{ from, to netip.Addr }

// hopPackets is how many packets may wait for the harness to read them.
const hopPackets = 10000

// newHop makes the device a port of the switch that learns no addresses and gets
// no packet but those sent to it.
func newHop(name, bridge string) (*hop, error) {
	tap, err := openTAP(name)
	if err != nil {
		return nil, &UnavailableError{
			What: "a delay or a rate of packets",
			Why:  fmt.Sprintf("%v: modprobe tun; in a container also --device /dev/net/tun", err),
		}
	}
	err = ip("the hop", nil,
		fmt.Sprintf("link set %s txqueuelen %d master %s up", name, hopPackets, bridge),
		fmt.Sprintf("link set %s type bridge_slave learning off flood off mcast_flood off bcast_flood off", name))
	if err != nil {
		return nil, errors.Join(err, tap.Close())
	}
	h := &hop{tap: tap, wake: make(chan struct{}, 1), stop: make(chan struct{}), pipes: map[way]*pipe{}}
	h.wg.Go(h.takeIn)
	h.wg.Go(h.letOut)
	return h, nil
}

// openTAP makes a device that carries packets as hosts send them: segments in
// bulk, checksums still to be computed. What is so is in a header before each
// frame, and goes back with it.
func openTAP(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4)
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "TUNSETIFF " + name, Path: "/dev/net/tun", Err: err}, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// plan tells the hop what acts on which flow from now on. Frames of flows on
// which nothing acts any more leave at once.
func (h *hop) plan(acting []*disturbance) {
	pipes := map[way]pipe{}
	for _, d := range acting {
		for _, f := range d.flows {
			if d.hops() {
				w := way{f.From.addr, f.To.addr}
				pipes[w] = pipes[w].with(d)
			}
		}
	}
	h.mu.Lock()
	for w, p := range h.pipes {
		if _, ok := pipes[w]; !ok {
			h.loose = p.flush(h.loose)
			delete(h.pipes, w)
		}
	}
	for w, p := range pipes {
		if h.pipes[w] == nil {
			h.pipes[w] = &pipe{}
		}
		h.pipes[w].delay, h.pipes[w].rate = p.delay, p.rate
	}
	h.mu.Unlock()
	h.nudge()
}

// with is the pipe under one more disturbance.
func (p pipe) with(d *disturbance) pipe {
	p.delay += d.delay
	if d.rate > 0 && (p.rate == 0 || d.rate < p.rate) {
		p.rate = d.rate
	}
	return p
}

func (h *hop) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// takeIn reads frames until the device is closed.
func (h *hop) takeIn() {
	buf := make([]byte, 128<<10)
	for {
		n, err := h.tap.Read(buf)
		if err != nil {
			return
		}
		h.take(time.Now(), append([]byte(nil), buf[:n]...))
	}
}

func (h *hop) take(now time.Time, frame []byte) {
	h.mu.Lock()
	w, _ := wayOf(frame)
	p := h.pipes[w]
	first := true
	if p == nil {
		h.loose = append(h.loose, frame) // a fault that was lifted a moment ago
	} else {
		first = len(p.parcels) == 0
		p.push(now, frame)
	}
	h.mu.Unlock()
	if first {
		h.nudge()
	}
}

// wayOf reads the addresses of an IPv4 packet in a frame as the device carries it.
func wayOf(frame []byte) (way, bool) {
	const ethernet = 10 // length of struct virtio_net_hdr
	const packetAt = ethernet + 14
	if len(frame) < packetAt+20 || binary.BigEndian.Uint16(frame[packetAt-2:]) != unix.ETH_P_IP {
		return way{}, false
	}
	packet := frame[packetAt:]
	return way{netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))}, true
}

// letOut writes frames when they are due, until the hop is closed.
func (h *hop) letOut() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		frames, wait := h.due(time.Now())
		for _, frame := range frames {
			_, _ = h.tap.Write(frame) // as a wire, it may lose
		}
		if len(frames) > 0 {
			continue // time has passed
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-h.wake:
		case <-h.stop:
			return
		}
	}
}

// due takes what is due out of the pipes, and says how long the next has.
func (h *hop) due(now time.Time) (frames [][]byte, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	frames, h.loose = h.loose, nil
	wait = time.Hour
	for _, p := range h.pipes {
		frames = p.pop(now, frames)
		if at, ok := p.next(); ok {
			wait = min(wait, at.Sub(now))
		}
	}
	return frames, wait
}

// close removes the device and what is held in it.
func (h *hop) close() error {
	close(h.stop)
	err := h.tap.Close()
	h.wg.Wait()
	return err
}
