package servershim

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quorumwise/quorumwise/healthsvc"
)

// metrics are always counted, and shown when there is a registerer.
type metrics struct {
	quorum, serving, window, watchers prometheus.Gauge
	roundTrip                         prometheus.Histogram
	proofs, changes                   *prometheus.CounterVec
	lateWakes                         prometheus.Counter
}

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "quorumshim", Name: name, Help: help})
	}
	m := &metrics{
		quorum:   gauge("quorum_held", "1 while a linearizable read begun within the window has completed."),
		serving:  gauge("serving", "1 while clients are told to use this member."),
		window:   gauge("window_seconds", "Age of the newest proof of quorum at which quorum is called lost."),
		watchers: gauge("watchers", "Open Watch streams for services of the contract; polls are spread out by it."),
		roundTrip: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "quorumshim", Name: "proof_seconds",
			Help:    "Round trip of completed proofs of quorum.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12),
		}),
		proofs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "quorumshim", Name: "proofs_total",
			Help: "Proofs of quorum by outcome: completed, late, timeout, failed.",
		}, []string{"outcome"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "quorumshim", Name: "changes_total",
			Help: "Changes of the verdict by the reason of the new one; empty: serving.",
		}, []string{"reason"}),
		lateWakes: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "quorumshim", Name: "late_wakes_total",
			Help: "Times that the shim's own loop woke late.",
		}),
	}
	for _, o := range []proofOutcome{proofCompleted, proofLate, proofTimedOut, proofFailed} {
		m.proofs.WithLabelValues(string(o))
	}
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.quorum, m.serving, m.window, m.watchers, m.roundTrip, m.proofs, m.changes, m.lateWakes,
	}
}

// register shows all metrics or, with an error, none. The function returned
// takes them away again.
func (m *metrics) register(r prometheus.Registerer) (func(), error) {
	if r == nil {
		return func() {}, nil
	}
	var done []prometheus.Collector
	away := func() {
		for _, c := range done {
			r.Unregister(c)
		}
	}
	for _, c := range m.collectors() {
		if err := r.Register(c); err != nil {
			away()
			var twice prometheus.AlreadyRegisteredError
			if errors.As(err, &twice) {
				return nil, fmt.Errorf("servershim: Config.Registerer has the metrics of another shim already: wrap it with a label for each, see prometheus.WrapRegistererWith (%w)", err)
			}
			return nil, fmt.Errorf("servershim: Config.Registerer refuses the metrics: %w", err)
		}
		done = append(done, c)
	}
	return away, nil
}

func (m *metrics) publish(r healthsvc.Report, window time.Duration, watchers int) {
	m.quorum.Set(oneIf(r.Quorum))
	m.serving.Set(oneIf(r.Serving))
	m.window.Set(window.Seconds())
	m.watchers.Set(float64(watchers))
}

func (m *metrics) proof(o proofOutcome, rtt time.Duration) {
	if o == "" {
		return
	}
	m.proofs.WithLabelValues(string(o)).Inc()
	if o == proofCompleted || o == proofLate {
		m.roundTrip.Observe(rtt.Seconds())
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
