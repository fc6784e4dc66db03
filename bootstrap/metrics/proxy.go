package metrics

import "github.com/prometheus/client_golang/prometheus"

// Values of the label ip_family.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// proxy holds the metrics of kube-proxy.
type proxy struct {
	sync, full, partial, programming  *prometheus.HistogramVec
	lastSync, lastQueued, noLocal     *prometheus.GaugeVec
	servicesPending, endpointsPending prometheus.Gauge
	serviceChanges, endpointChanges   prometheus.Counter
	healthz, livez                    *prometheus.CounterVec
}

// newProxy makes the metrics with the names, labels and buckets of kube-proxy. The help texts
// describe their meaning for VPP.
func newProxy(to maker) *proxy {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return to.NewHistogramVec(prometheus.HistogramOpts{Name: "kubeproxy_" + name, Help: help, Buckets: buckets}, []string{"ip_family"})
	}
	syncBuckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	return &proxy{
		sync:             histogram("sync_proxy_rules_duration_seconds", "Time to write changes to VPP.", syncBuckets),
		full:             histogram("sync_full_proxy_rules_duration_seconds", "Time to read VPP, compare it with the desired state and repair it.", syncBuckets),
		partial:          histogram("sync_partial_proxy_rules_duration_seconds", "Time to write only the changes to VPP.", syncBuckets),
		programming:      histogram("network_programming_duration_seconds", "Time from the change of an endpoint until VPP has it.", programmingBuckets()),
		lastSync:         to.gauges("kubeproxy_sync_proxy_rules_last_timestamp_seconds", "Time of the last write of changes to VPP.", "ip_family"),
		lastQueued:       to.gauges("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", "Time at which the last change was queued.", "ip_family"),
		servicesPending:  to.gauge("kubeproxy_sync_proxy_rules_service_changes_pending", "Changes of Services that have not reached VPP."),
		endpointsPending: to.gauge("kubeproxy_sync_proxy_rules_endpoint_changes_pending", "Changes of EndpointSlices that have not reached VPP."),
		serviceChanges:   to.counter("kubeproxy_sync_proxy_rules_service_changes_total", "Changes of Services received."),
		endpointChanges:  to.counter("kubeproxy_sync_proxy_rules_endpoint_changes_total", "Changes of EndpointSlices received."),
		noLocal: to.gauges("kubeproxy_sync_proxy_rules_no_local_endpoints_total",
			"Service ports that drop traffic because they have no local endpoint.", "traffic_policy", "ip_family"),
		healthz: to.counters("kubeproxy_proxy_healthz_total", "Answers of /healthz by status.", "code"),
		livez:   to.counters("kubeproxy_proxy_livez_total", "Answers of /livez by status.", "code"),
	}
}

// expect creates the histograms of a family with a count of 0, so that queries find them before the
// first observation.
func (p *proxy) expect(family string) {
	for _, h := range []*prometheus.HistogramVec{p.sync, p.full, p.partial, p.programming} {
		h.WithLabelValues(family)
	}
}

// programmingBuckets are the buckets of kube-proxy: narrow up to one minute, wide up to five.
func programmingBuckets() []float64 {
	buckets := []float64{0.25, 0.5}
	buckets = append(buckets, prometheus.LinearBuckets(1, 1, 59)...)
	buckets = append(buckets, prometheus.LinearBuckets(60, 5, 12)...)
	return append(buckets, prometheus.LinearBuckets(120, 30, 7)...)
}
