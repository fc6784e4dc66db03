package metrics

import "github.com/prometheus/client_golang/prometheus"

// newRefused makes the counter of refused HTTP clients, with the series of all reasons at 0, so
// that alerts on increases work from the first one.
func newRefused() *prometheus.CounterVec {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "troupe_http_refused_total",
		Help: "HTTP requests and connections refused, by listener and reason: host = the host of the request does not belong to the agent; " +
			"origin = a page of another site; address = a request for state that does not come over loopback; traces = too many traces at the same time; connections = closed to make room above the limit.",
	}, []string{"listener", "why"})
	for _, one := range [][]string{
		{"http", "host"},
		{"http", "origin"},
		{"http", "address"},
		{"http", "traces"},
		{"http", "connections"},
		{"control", "traces"},
		{"healthz", "connections"},
		{"health-check-node-port", "connections"},
		{"metrics", "connections"},
	} {
		refused.WithLabelValues(one...)
	}
	return refused
}

// Refused counts a request or a connection that a listener has refused.
func (m *Metrics) Refused(listener, why string) { m.refused.WithLabelValues(listener, why).Inc() }
