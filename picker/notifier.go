package picker

import "sync"

// notifier calls a function from a goroutine of its own whenever it was told of
// a change since the last call. Changes in quick succession make one call.
//
// The goroutine starts with the first function that is set and ends in close,
// which waits for it.
type notifier struct {
	wake chan struct{} // capacity 1: a change nobody has been told of

	mu      sync.Mutex
	call    func()
	running bool
	closed  bool
	stop    chan struct{}
	stopped chan struct{}
}

func newNotifier() *notifier {
	return &notifier{
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
}

// set replaces the function and has it called once.
func (n *notifier) set(call func()) {
	n.mu.Lock()
	n.call = call
	if !n.running && !n.closed && call != nil {
		n.running = true
		go n.run()
	}
	n.mu.Unlock()
	n.changed()
}

// changed never blocks.
func (n *notifier) changed() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *notifier) run() {
	defer close(n.stopped)
	for {
		select {
		case <-n.stop:
			return
		case <-n.wake:
		}
		n.mu.Lock()
		call := n.call
		n.mu.Unlock()
		if call != nil {
			call()
		}
	}
}

func (n *notifier) close() {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.stop)
	}
	running := n.running
	n.mu.Unlock()
	if running {
		<-n.stopped
	}
}
