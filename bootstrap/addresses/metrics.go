package addresses

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-vpp/troupe/kube/allocator"
)

// metrics reads the state for each scrape. Labels are pools, never Services.
type metrics struct{ status func() allocator.Status }

var (
	leading  = describe("leading", "1 if this allocator writes; only it has the other metrics.")
	given    = describe("pool_given", "Addresses of a pool that Services have.", "pool")
	free     = describe("pool_free", "Addresses of a pool that Services can get.", "pool")
	refused  = describe("pool_refused", "1 if a pool gives nothing, as its status says.", "pool")
	services = describe("services", "Services that get addresses from pools.")
	without  = describe("services_without_address", "Services that lack an address of one of their families.")
	written  = describe("writes_total", "Writes of a status that were made.")
	failed   = describe("writes_failed_total", "Writes of a status that failed.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("troupe_addresses_"+name, help, labels, nil)
}

// Describe satisfies prometheus.Collector. It sends nothing, because which metrics there are
// depends on the pools.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect satisfies prometheus.Collector.
func (m metrics) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	number := map[bool]float64{true: 1}
	s := m.status()
	send(leading, prometheus.GaugeValue, number[s.Leading])
	if !s.Leading || !s.Listed {
		return
	}
	for pool, p := range s.Pools {
		send(given, prometheus.GaugeValue, float64(p.Given), pool)
		send(free, prometheus.GaugeValue, float64(p.Free), pool)
		send(refused, prometheus.GaugeValue, number[p.Refused], pool)
	}
	send(services, prometheus.GaugeValue, float64(s.Services))
	send(without, prometheus.GaugeValue, float64(s.Without))
	send(written, prometheus.CounterValue, float64(s.Written))
	send(failed, prometheus.CounterValue, float64(s.Failed))
}
