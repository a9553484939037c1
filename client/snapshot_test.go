package client

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/picker"
	"github.com/quorumwise/quorumwise/prober"
)

// Nothing is known yet: neither that everything is bad nor that nobody reports.
func TestNothingIsSaidOfNoEndpoints(t *testing.T) {
	p, err := prober.New(prober.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a := &Attachment{hub: picker.NewHub(), prober: p}
	defer a.hub.Close()
	if h := a.Health(); h.FailOpen || h.NoReports || len(h.Endpoints) != 0 {
		t.Errorf("Health before anything is known: %+v, want no alarm", h)
	}
	left := map[string]time.Time{"gone:2379": time.Now()}
	if v := a.view(time.Now(), left); len(v.endpoints) != 0 || len(left) != 0 {
		t.Errorf("an endpoint that left and has nothing in flight is remembered: %v", left)
	}
}
