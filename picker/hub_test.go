package picker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

func TestHubIsFoundByItsIDUntilClosed(t *testing.T) {
	h, other := NewHub(), NewHub()
	defer other.Close()
	if lookupHub(h.ID()) != h || h.ID() == other.ID() {
		t.Errorf("ids %q and %q do not lead to their hubs", h.ID(), other.ID())
	}
	if want := fmt.Sprintf(`{"hub":"%s"}`, h.ID()); !strings.Contains(h.LoadBalancingConfig(), want) {
		t.Errorf("config %s, want it to hold %s", h.LoadBalancingConfig(), want)
	}
	h.Close()
	if lookupHub(h.ID()) != nil {
		t.Error("a closed hub is still in the registry: it would never be freed")
	}
}

func TestLedgersOfEndpointsThatAreGoneAreDropped(t *testing.T) {
	h := NewHub()
	defer h.Close()
	p := &policy{}
	h.reseat(func(r *roster) { r.announce(p, []string{"a", "b"}) })
	books, ok := h.books(p, []string{"a", "b"})
	if !ok {
		t.Fatal("the only instance has no books")
	}
	_, c := h.Begin(context.Background(), ClassWatch, "m")
	mustFile(t, c, books[0])

	now := &table{seats: []place{{address: "b", ledger: books[1]}}}
	h.sweep(p, now)
	if got := h.Calls("a"); len(got) != 1 {
		t.Errorf("listed %v on the endpoint that left, want the call that is still on it", got)
	}
	c.Finish()
	h.sweep(p, now)
	if len(h.ledgers) != 1 || h.ledgers["b"] == nil {
		t.Errorf("ledgers %v, want b's only: addresses may come and go for years", h.ledgers)
	}
	if again, _ := h.books(p, []string{"a"}); again[0] == books[0] {
		t.Error("a retired ledger was handed out: calls could not be filed")
	}
	if _, ok := h.books(&policy{}, []string{"a"}); ok {
		t.Error("an instance that is not the main one got books")
	}
}

func TestPickOnARetiredLedgerWaitsInsteadOfSpinning(t *testing.T) {
	h := NewHub()
	defer h.Close()
	l := &ledger{address: "a"}
	l.retire()
	p := &policy{hub: h}
	now := &table{graded: true, hub: h, seats: []place{{
		address: "a", ledger: l, picker: readyChild{}, candidate: candidate{state: connectivity.Ready},
	}}}
	now.decide()
	p.table.Store(now)
	ctx, c := h.Begin(context.Background(), ClassRead, "m")
	defer c.Finish()
	if _, err := (picker{p}).Pick(balancer.PickInfo{Ctx: ctx}); err != balancer.ErrNoSubConnAvailable {
		t.Errorf("error %v, want %v until the next table comes", err, balancer.ErrNoSubConnAvailable)
	}
	if c.Sent() {
		t.Error("Sent is true for a call that was not picked")
	}
}

// readyChild picks nothing in particular, at once.
type readyChild struct{}

func (readyChild) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{}, nil
}
