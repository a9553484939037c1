package workload

import (
	"maps"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Arrivals counts the Puts that reached servers, by the value that they carry.
// Loads put a value of its own into every Put.
type Arrivals struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts a request; anything but a Put is ignored.
func (a *Arrivals) Add(request any) {
	put, ok := request.(*pb.PutRequest)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n == nil {
		a.n = make(map[string]int)
	}
	a.n[string(put.Value)]++
}

// Counts is a copy of the counts by value; never nil, which would say that nobody
// counted.
func (a *Arrivals) Counts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n == nil {
		return make(map[string]int)
	}
	return maps.Clone(a.n)
}
