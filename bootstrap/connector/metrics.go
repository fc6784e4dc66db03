package connector

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// metrics reads the board for each scrape. Labels are sources and reasons, never services.
type metrics struct{ *board }

var (
	leading  = describe("leading", "1 if this connector writes.")
	wanted   = describe("services", "Services that the sources want together.")
	pending  = describe("services_pending", "Services that wait for a write.")
	failing  = describe("services_failing", "Services whose last write failed.")
	written  = describe("writes_total", "Writes that were made.")
	refused  = describe("writes_failed_total", "Writes that failed, by reason.", "reason")
	offered  = describe("source_services", "Services in the last answer of a source.", "source")
	complete = describe("source_complete", "1 if the last answer of a source was complete.", "source")
	answered = describe("source_last_answer_timestamp_seconds", "Time at which a source last answered.", "source")
	held     = describe("source_held", "Services that vanished from a source and whose deletion is held back.", "source")
	waiting  = describe("source_waiting", "New services of a source that wait, because it has as many as it may have.", "source")
	problems = describe("problems", "Unused parts of the catalogs, by reason.", "reason")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("troupe_connector_"+name, help, labels, nil)
}

// Describe satisfies prometheus.Collector. It sends nothing, because which metrics there are
// depends on the sources.
func (metrics) Describe(chan<- *prometheus.Desc) {}

func (m metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if s := m.sink.Load(); s != nil {
		gauge(leading, number(s.Leads))
		gauge(pending, float64(s.Pending))
		gauge(failing, float64(len(s.Failing)))
		ch <- prometheus.MustNewConstMetric(written, prometheus.CounterValue, float64(s.Written))
		for reason, n := range s.Refused {
			ch <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n), string(reason))
		}
	}
	s := m.aggregator.Load()
	if s == nil {
		return
	}
	for _, source := range s.Sources {
		gauge(offered, float64(source.Services), source.Name)
		gauge(complete, number(source.Complete), source.Name)
		gauge(held, float64(len(source.Held)), source.Name)
		gauge(waiting, float64(source.Waiting), source.Name)
		if !source.Published.IsZero() {
			gauge(answered, float64(source.Published.Unix()), source.Name)
		}
	}
	if s.planned != nil {
		gauge(wanted, float64(s.Services))
		for reason, n := range catalog.Count(s.planned.problems) {
			gauge(problems, float64(n), string(reason))
		}
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
