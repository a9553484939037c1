package prober

import "sync"

// probeKey tells apart probes that must not be shared.
type probeKey struct {
	share    any // Config.ShareKey; a value of its own for probers that do not share
	endpoint Endpoint
	times    times
}

// registry holds the probes of the process by reference count.
var registry = struct {
	mu     sync.Mutex
	probes map[probeKey]*entry
}{probes: make(map[probeKey]*entry)}

type entry struct {
	probe *probe
	users int
}

// acquire returns the probe of a key, made with d if there is none. Each acquire is
// followed by one release.
func acquire(key probeKey, d dialer) *probe {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	e := registry.probes[key]
	if e == nil {
		e = &entry{probe: newProbe(key, d)}
		registry.probes[key] = e
	}
	e.users++
	return e.probe
}

// release gives a probe back; the last one ends it, and waits for its end.
func release(p *probe) {
	if last(p.key) {
		p.close()
	}
}

func last(key probeKey) bool {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	e := registry.probes[key]
	e.users--
	if e.users > 0 {
		return false
	}
	delete(registry.probes, key)
	return true
}

// Shared returns the number of probes alive in the process.
func Shared() int {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	return len(registry.probes)
}
