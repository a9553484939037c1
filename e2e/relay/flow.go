package relay

import (
	"net"
	"slices"
	"sync"
	"time"
)

const (
	chunkSize  = 16 << 10
	chunkQueue = 64
)

// dialTimeout bounds the second half of a connection. The target is on this
// host: it answers or refuses at once.
const dialTimeout = 2 * time.Second

// flow is one connection: near is the side that dialled the door, far the side
// of the node behind it.
type flow struct {
	network *Network
	done    chan struct{} // closed by reset

	mu    sync.Mutex
	near  net.Conn
	far   net.Conn // nil until dialled
	over  bool
	stuck []Direction // directions in which something waits for ever
}

// chunk is a piece of a direction. The end of the stream is a chunk too: it can
// be lost like any other.
type chunk struct {
	data []byte
	at   time.Time
	end  bool
}

// run owns the flow until both of its directions have ended or it was reset.
func (f *flow) run(to, target string, dials Dials) {
	defer f.end(false)
	from, read, err := dials(f.near)
	if err != nil {
		f.network.log.Info("connection refused", "to", to, "error", err)
		return
	}
	there := Direction{From: from, To: to}
	if !f.pass(there) {
		return
	}
	far, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil || !f.join(far) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { f.pump(there, f.near, far, read) })
	both.Go(func() { f.pump(there.reverse(), far, f.near, nil) })
	both.Wait()
}

// join adds the far side; false means that the flow was reset meanwhile.
func (f *flow) join(far net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		far.Close()
		return false
	}
	f.far = far
	return true
}

// pump carries one direction. Reading and writing are two goroutines, so that a
// delay shifts the bytes instead of thinning them out.
func (f *flow) pump(d Direction, src, dst net.Conn, first []byte) {
	queue := make(chan chunk, chunkQueue)
	var reader sync.WaitGroup
	reader.Go(func() { f.read(src, queue, first) })
	defer reader.Wait()
	for {
		var c chunk
		select {
		case c = <-queue:
		case <-f.done:
			return
		}
		if !f.wait(c.at.Add(f.network.rule(d).delay)) || !f.pass(d) {
			return
		}
		if c.end {
			closeWrite(dst)
			return
		}
		if _, err := dst.Write(c.data); err != nil {
			f.reset()
			return
		}
	}
}

func (f *flow) read(src net.Conn, queue chan<- chunk, first []byte) {
	put := func(c chunk) bool {
		select {
		case queue <- c:
			return true
		case <-f.done:
			return false
		}
	}
	if len(first) > 0 && !put(chunk{data: first, at: time.Now()}) {
		return
	}
	for {
		buf := make([]byte, chunkSize)
		n, err := src.Read(buf)
		if n > 0 && !put(chunk{data: buf[:n], at: time.Now()}) {
			return
		}
		if err != nil {
			put(chunk{end: true, at: time.Now()})
			return
		}
	}
}

// wait returns at the given time; false means that the flow was reset first.
func (f *flow) wait(until time.Time) bool {
	left := time.Until(until)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.done:
		return false
	}
}

// pass returns true when the direction carries. When it is held, what is being
// carried is stuck: pass then waits for the reset and returns false.
//
// The flow is marked before the rule is read a second time, so that a Heal
// between the two either sees the mark or is seen by the second look.
func (f *flow) pass(d Direction) bool {
	if !f.network.rule(d).held {
		return true
	}
	f.mu.Lock()
	f.stuck = append(f.stuck, d)
	f.mu.Unlock()
	if !f.network.rule(d).held {
		f.reset()
	}
	<-f.done
	return false
}

func (f *flow) stuckIn(ds []Direction) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.stuck, func(d Direction) bool { return slices.Contains(ds, d) })
}

// reset ends both sides with a TCP reset: what was under way is lost.
func (f *flow) reset() { f.end(true) }

// end is idempotent; the first caller decides whether it is a reset. After a
// plain end what was written still arrives.
func (f *flow) end(reset bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.over = true
	close(f.done)
	for _, conn := range []net.Conn{f.near, f.far} {
		if conn == nil {
			continue
		}
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			tcp.SetLinger(0)
		}
		conn.Close()
	}
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	conn.Close()
}
