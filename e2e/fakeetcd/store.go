package fakeetcd

import (
	"bytes"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// store holds every version of every key: a member that lags reads at the revision that it has
// applied. No lock, no clock.
type store struct {
	revision  int64
	compacted int64                  // -1 while nothing has been
	keys      map[string][]kvVersion // oldest first
	history   []*mvccpb.Event        // in order; an event's revision is its ModRevision
	attached  map[string]int64       // lease of a key
}

// kvVersion is a key from one revision on.
type kvVersion struct {
	revision int64
	kv       *mvccpb.KeyValue // nil: deleted
}

func newStore() *store {
	return &store{revision: 1, compacted: -1, keys: make(map[string][]kvVersion), attached: make(map[string]int64)}
}

// get returns a key as it was at a revision, nil if it was not there.
func (s *store) get(key string, at int64) *mvccpb.KeyValue {
	versions := s.keys[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].revision <= at {
			return versions[i].kv
		}
	}
	return nil
}

// span returns the keys from key up to end as they were at a revision, in order of key.
func (s *store) span(key, end []byte, at int64) []*mvccpb.KeyValue {
	if len(end) == 0 {
		if kv := s.get(string(key), at); kv != nil {
			return []*mvccpb.KeyValue{kv}
		}
		return nil
	}
	var kvs []*mvccpb.KeyValue
	for k := range s.keys {
		if !within([]byte(k), key, end) {
			continue
		}
		if kv := s.get(k, at); kv != nil {
			kvs = append(kvs, kv)
		}
	}
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return kvs
}

// within reports whether a key lies in a range as the API writes it: no end is the key alone, an
// end of one zero byte is everything from key on.
func within(k, key, end []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.Equal(k, key)
	case len(end) == 1 && end[0] == 0:
		return bytes.Compare(k, key) >= 0
	default:
		return bytes.Compare(k, key) >= 0 && bytes.Compare(k, end) < 0
	}
}

// since returns the events of the revisions from first to last.
func (s *store) since(first, last int64) []*mvccpb.Event {
	from, _ := slices.BinarySearchFunc(s.history, first, byRevision)
	to, _ := slices.BinarySearchFunc(s.history, last+1, byRevision)
	if from >= to {
		return nil
	}
	return s.history[from:to]
}

func byRevision(e *mvccpb.Event, revision int64) int {
	switch {
	case e.Kv.ModRevision < revision:
		return -1
	case e.Kv.ModRevision > revision:
		return 1
	default:
		return 0
	}
}

// compact forgets what was before a revision: reads and watches of it are refused from now on.
func (s *store) compact(revision int64) error {
	switch {
	case revision <= s.compacted:
		return rpctypes.ErrGRPCCompacted
	case revision > s.revision:
		return rpctypes.ErrGRPCFutureRev
	}
	s.compacted = revision
	return nil
}

// write is one entry of the log while it is being applied: everything in it gets one revision.
type write struct {
	s        *store
	seen     int64 // revision that it reads at until it has changed something
	revision int64
	dirty    bool
	undos    []func() // in the order of what they undo
}

func (s *store) begin() *write { return &write{s: s, seen: s.revision, revision: s.revision + 1} }

// at returns an entry that may only read, at a revision of the past.
func (s *store) at(revision int64) *write { return &write{s: s, seen: revision} }

// undo takes back all that the entry changed.
func (w *write) undo() {
	for i := len(w.undos) - 1; i >= 0; i-- {
		w.undos[i]()
	}
	w.dirty, w.undos = false, nil
}

// end makes the entry's changes the store's newest revision, and returns that.
func (w *write) end() int64 {
	if w.dirty {
		w.s.revision = w.revision
	}
	return w.s.revision
}

// put stores a key, and returns what was there before.
func (w *write) put(key string, value []byte, lease int64) *mvccpb.KeyValue {
	prev := w.s.get(key, w.revision)
	kv := &mvccpb.KeyValue{
		Key: []byte(key), Value: value, Lease: lease,
		CreateRevision: w.revision, ModRevision: w.revision, Version: 1,
	}
	if prev != nil {
		kv.CreateRevision, kv.Version = prev.CreateRevision, prev.Version+1
	}
	w.add(key, kv, &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: kv})
	w.attach(key, lease)
	return prev
}

// remove deletes a range, and returns what was there.
func (w *write) remove(key, end []byte) []*mvccpb.KeyValue {
	gone := w.s.span(key, end, w.revision)
	for _, kv := range gone {
		tombstone := &mvccpb.KeyValue{Key: kv.Key, ModRevision: w.revision}
		w.add(string(kv.Key), nil, &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: tombstone})
		w.attach(string(kv.Key), 0)
	}
	return gone
}

func (w *write) add(key string, kv *mvccpb.KeyValue, event *mvccpb.Event) {
	w.s.keys[key] = append(w.s.keys[key], kvVersion{revision: w.revision, kv: kv})
	w.s.history = append(w.s.history, event)
	w.dirty = true
	w.undos = append(w.undos, func() {
		w.s.keys[key] = w.s.keys[key][:len(w.s.keys[key])-1]
		w.s.history = w.s.history[:len(w.s.history)-1]
	})
}

// attach makes a key belong to a lease, 0: to none.
func (w *write) attach(key string, lease int64) {
	before := w.s.attached[key]
	set := func(id int64) {
		if id == 0 {
			delete(w.s.attached, key)
			return
		}
		w.s.attached[key] = id
	}
	set(lease)
	w.undos = append(w.undos, func() { set(before) })
}

// attachedTo returns the keys of a lease, in order.
func (s *store) attachedTo(lease int64) []string {
	var keys []string
	for key, id := range s.attached {
		if id == lease {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}

// revoke deletes the keys of a lease.
func (s *store) revoke(lease int64) {
	w := s.begin()
	for _, key := range s.attachedTo(lease) {
		w.remove([]byte(key), nil)
	}
	w.end()
}
