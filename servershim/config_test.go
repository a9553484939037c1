package servershim

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestConfigScalesWithTheElectionTimeout(t *testing.T) {
	for _, c := range []struct{ election, interval, floor time.Duration }{
		{0, 100 * ms, 250 * ms},
		{time.Second, 100 * ms, 250 * ms},
		{5 * time.Second, 500 * ms, 1250 * ms},
		{500 * ms, 100 * ms, 250 * ms},
		{100 * ms, 50 * ms, 100 * ms},
		{50 * time.Second, 5 * time.Second, 12500 * ms},
	} {
		got := Config{ElectionTimeout: c.election}.withDefaults()
		if got.Interval != c.interval || got.WindowFloor != c.floor {
			t.Errorf("election timeout %v: got interval %v, floor %v, want %v, %v", c.election, got.Interval, got.WindowFloor, c.interval, c.floor)
		}
		if err := got.validate(); err != nil {
			t.Errorf("election timeout %v: got %v, want defaults that are allowed", c.election, err)
		}
	}
}

func TestNewRefusesWrongConfig(t *testing.T) {
	srv := healthsvc.NewServer(healthsvc.ServerOptions{})
	for _, c := range []struct {
		cfg  Config
		want []string // field, value, what is allowed
	}{
		{Config{ElectionTimeout: -1}, []string{"ElectionTimeout", "-1ns", "100ms"}},
		{Config{ElectionTimeout: time.Minute}, []string{"ElectionTimeout", "1m0s", "50s"}},
		{Config{WindowFloor: 2 * time.Second}, []string{"WindowFloor", "2s", "1s"}},
		{Config{WindowFloor: -1}, []string{"WindowFloor", "-1ns", "1s"}},
		{Config{Interval: time.Second}, []string{"Interval", "1s", "125ms"}},
		{Config{Interval: 1}, []string{"Interval", "1ns", "10ms"}},
		{Config{GoodRounds: -1}, []string{"GoodRounds", "-1", "1 to 1000"}},
		{Config{HoldDownMax: 1}, []string{"HoldDownMax", "1ns", "1h"}},
		{Config{Poll: time.Hour}, []string{"Poll", "1h0m0s", "1m"}},
	} {
		_, err := New(healthy(), srv, c.cfg)
		if err == nil {
			t.Errorf("%+v: got nil, want an error", c.cfg)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want it to name %q: field, value, what is allowed", err, want)
			}
		}
	}
	if _, err := New(nil, srv, Config{}); err == nil {
		t.Error("New without a source: got nil, want an error")
	}
	if _, err := New(healthy(), nil, Config{}); err == nil {
		t.Error("New without a server: got nil, want an error")
	}
}

func TestValidityIsLongerThanTheLoopMayBeLate(t *testing.T) {
	if got := Validity(0); got != time.Second {
		t.Errorf("got %v by default, want 1 s", got)
	}
	if got := Validity(500 * ms); got != 5*time.Second {
		t.Errorf("got %v for proofs each 500 ms, want 5 s", got)
	}
}

func TestMetricsComeAndGoWithRun(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	run(t, healthy(), Config{Registerer: reg}, func(t *testing.T, s *Shim) {
		settled(t, s)
		got := gathered(t, reg)
		for name, want := range map[string]float64{
			"quorumshim_quorum_held": 1, "quorumshim_serving": 1, "quorumshim_window_seconds": 0.25, "quorumshim_watchers": 0,
		} {
			if got[name] != want {
				t.Errorf("got %s %v, want %v", name, got[name], want)
			}
		}
		if n := got["quorumshim_proofs_total"]; n < 50 || n > 60 {
			t.Errorf("got %v proofs in a little over 5 s, want ten a second", n)
		}
		for _, name := range []string{"quorumshim_proof_seconds", "quorumshim_changes_total", "quorumshim_late_wakes_total"} {
			if _, ok := got[name]; !ok {
				t.Errorf("got no %s", name)
			}
		}
		other, err := New(healthy(), healthsvc.NewServer(healthsvc.ServerOptions{}), Config{Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Registerer") {
			t.Errorf("a second shim on the same registerer: got %v, want an error that names the field", err)
		}
		if err := s.Run(t.Context()); err == nil {
			t.Error("Run twice: got nil, want an error")
		}
	})
	if got := gathered(t, reg); len(got) != 0 {
		t.Errorf("got %v after Run has ended, want none left", got)
	}
}

// gathered sums each metric over its labels; histograms count.
func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sums
}
