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

// bench is a policy with a table made by hand.
func bench(t *testing.T, grade Grade, children ...balancer.Picker) (*policy, []*ledger) {
	h := NewHub()
	t.Cleanup(h.Close)
	p := &policy{hub: h}
	now := &table{graded: true, hub: h}
	var ledgers []*ledger
	for i, c := range children {
		l := &ledger{address: string(rune('a' + i))}
		ledgers = append(ledgers, l)
		now.seats = append(now.seats, place{
			address: l.address, ledger: l, picker: c,
			candidate: candidate{grade: grade, state: connectivity.Ready},
		})
	}
	now.decide()
	p.table.Store(now)
	return p, ledgers
}

// childFunc is the picker of one endpoint.
type childFunc func()

func (f childFunc) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	f()
	return balancer.PickResult{}, nil
}

func pickOn(t *testing.T, p *policy, class Class) (*Call, error) {
	ctx, c := p.hub.Begin(context.Background(), class, "m")
	t.Cleanup(c.Finish)
	_, err := picker{p}.Pick(balancer.PickInfo{Ctx: ctx})
	return c, err
}

func TestPickOnARetiredLedgerWaitsInsteadOfSpinning(t *testing.T) {
	p, ledgers := bench(t, Unknown, childFunc(func() {}))
	ledgers[0].retire()
	c, err := pickOn(t, p, ClassRead)
	if err != balancer.ErrNoSubConnAvailable {
		t.Errorf("error %v, want %v until the next table comes", err, balancer.ErrNoSubConnAvailable)
	}
	if c.Sent() {
		t.Error("Sent is true for a call that was not picked")
	}
}

func TestPickChoosesAgainWhenGradesChangeUnderIt(t *testing.T) {
	var p *policy
	swap := childFunc(func() { // between the choice and the filing
		now := p.table.Load()
		next := &table{graded: true, hub: now.hub, seats: now.seats[1:]}
		next.decide()
		p.table.Store(next)
	})
	p, ledgers := bench(t, Unknown, swap, childFunc(func() {}))
	p.table.Load().next.Store(1) // the first one's turn
	c, err := pickOn(t, p, ClassRead)
	if err != nil || c.Address() != "b" || len(ledgers[0].calls()) != 0 {
		t.Errorf("filed under %q (error %v), want b: a is out, and who ended its calls would have missed this one", c.Address(), err)
	}
}

func TestStreamIsChosenAndFiledInOneStep(t *testing.T) {
	var p *policy
	alone := childFunc(func() {
		if p.opening.TryLock() {
			p.opening.Unlock()
			t.Error("a second stream could choose now, and would see the first one's place as free")
		}
	})
	p, _ = bench(t, Healthy, alone)
	if _, err := pickOn(t, p, ClassWatch); err != nil {
		t.Errorf("Pick: %v", err)
	}
}
