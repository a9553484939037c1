package picker

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// A policy is registered once for the whole process and gRPC builds its
// instances; a service config is the only thing that can be handed to them. So
// it carries the id of a hub, and this is where the id leads.
var (
	hubs    sync.Map // id to *Hub
	lastHub atomic.Uint64
)

func registerHub(h *Hub) {
	h.id = strconv.FormatUint(lastHub.Add(1), 10)
	hubs.Store(h.id, h)
}

func unregisterHub(h *Hub) { hubs.Delete(h.id) }

// lookupHub returns nil for an id of no living hub.
func lookupHub(id string) *Hub {
	h, _ := hubs.Load(id)
	hub, _ := h.(*Hub)
	return hub
}
