package client

import "github.com/prometheus/client_golang/prometheus"

// collector makes the metrics of a client from its snapshot when it is asked.
type collector struct{ a *Attachment }

var (
	descGrade = prometheus.NewDesc("quorumwise_client_endpoint_grade",
		"1 for the grade that the endpoint has now.", []string{"endpoint", "grade", "source"}, nil)
	descMoves = prometheus.NewDesc("quorumwise_client_moves_total",
		"Calls and streams moved off an endpoint.", []string{"class", "reason"}, nil)
	descUnreported = prometheus.NewDesc("quorumwise_client_endpoints_without_reports",
		"Endpoints that have no shim to follow, neither beside them nor in process.", nil, nil)
	descFailOpen = prometheus.NewDesc("quorumwise_client_fail_open",
		"1 while no endpoint is healthy or unknown and the best connected ones are used all the same.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descGrade
	ch <- descMoves
	ch <- descUnreported
	ch <- descFailOpen
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.a.Health()
	without := 0
	for _, e := range s.Endpoints {
		if e.Source != "shim" && e.Source != "in-process" {
			without++
		}
		ch <- prometheus.MustNewConstMetric(descGrade, prometheus.GaugeValue, 1, e.Address, e.Grade, e.Source)
	}
	for k, n := range s.Moves {
		ch <- prometheus.MustNewConstMetric(descMoves, prometheus.CounterValue, float64(n), k.Class, k.Reason)
	}
	ch <- prometheus.MustNewConstMetric(descUnreported, prometheus.GaugeValue, float64(without))
	failOpen := 0.0
	if s.FailOpen {
		failOpen = 1
	}
	ch <- prometheus.MustNewConstMetric(descFailOpen, prometheus.GaugeValue, failOpen)
}
