package metrics

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/troupe-vpp/troupe/actors/report"
)

// Metrics is the set of all metrics. It satisfies report.Observer.
type Metrics struct {
	registry *prometheus.Registry
	proxy    *proxy
	mirror   *mirror
	sessions *natSessions

	operations  *prometheus.CounterVec
	healing     *prometheus.CounterVec
	drift       *prometheus.CounterVec
	heap        *prometheus.GaugeVec
	noMemory    *prometheus.GaugeVec
	inputErrors prometheus.Gauge
	limited     prometheus.Gauge
	unplaced    prometheus.Gauge
	owner       *prometheus.GaugeVec
	connections prometheus.Counter
	refused     *prometheus.CounterVec
	watched     *watched
	families    atomic.Pointer[map[string][]string]
	exemplars   bool
	clock       func() time.Time
}

// maker makes the metrics of a registry.
type maker struct{ promauto.Factory }

func (m maker) gauge(name, help string) prometheus.Gauge {
	return m.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (m maker) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return m.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (m maker) counter(name, help string) prometheus.Counter {
	return m.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (m maker) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return m.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// New returns a new set with a registry of its own. Serves must be called before the first sync.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	to := maker{promauto.With(registry)}
	m := &Metrics{
		registry: registry, proxy: newProxy(to), mirror: newMirror(to), sessions: newNATSessions(to), watched: &watched{}, clock: time.Now,
		refused:    newRefused(to),
		operations: to.counters("troupe_vpp_operations_total", "Operations on VPP by renderer and outcome; unknown = VPP did not answer, so the renderer reads VPP again.", "renderer", "outcome"),
		healing: to.counters("troupe_healing_total", "Repairs by part and escalation step: key = one object retried, object = VPP read for one object, "+
			"downstream = VPP read and compared, full = desired state computed again, subtree = actors restarted, exit = process ended.", "part", "rung"),
		drift:       to.counters("troupe_drift_total", "Entries in VPP that were modified outside troupe and repaired.", "renderer"),
		heap:        to.gauges("troupe_vpp_heap_bytes", "Size and free part of VPP's main heap when a renderer last read them.", "what"),
		noMemory:    to.gauges("troupe_vpp_memory_waiting", "Rows and routes that are not in VPP, because the free part of its main heap is below the reserve.", "renderer"),
		connections: to.counter("troupe_vpp_connections_total", "Connections to VPP that were established; more than one means that VPP or its connection was lost."),
		inputErrors: to.gauge("troupe_input_errors", "Invalid parts of the present Kubernetes objects."),
		limited:     to.gauge("troupe_services_limited", "Services that are not served because they, or their namespace, are above a limit."),
		owner:       to.gauges("troupe_address_owner", "Whether VPP of this node answers ARP and ND for a load-balancer address of a pool.", "address"),
		unplaced:    to.gauge("troupe_unplaced_addresses", "Addresses of pods and local endpoints of this node for which VPP has no interface or route."),
	}
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector(), m.watched)
	return m
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: m.exemplars})
}

// Exemplars adds to the latency of changes the cause of the latest one in each bucket, for clients
// that read OpenMetrics. It must be called before the first observation.
func (m *Metrics) Exemplars() { m.exemplars = true }

// Watch sets the functions that every scrape calls; it replaces earlier ones.
func (m *Metrics) Watch(sources Sources) { m.watched.sources.Store(&sources) }

// Serves sets the address families of the services of each renderer. kube-proxy has one sync
// loop per family. The passes of these renderers count as its syncs; passes of any other renderer
// do not. A later call replaces the families.
func (m *Metrics) Serves(families map[string][]string) {
	m.families.Store(&families)
	for renderer, served := range families {
		// with all series at 0, so that alerts on increases work from the first one
		m.drift.WithLabelValues(renderer)
		for _, step := range []string{"key", "object", "downstream", "full", "subtree", "exit"} {
			m.healing.WithLabelValues(renderer, step)
		}
		for _, family := range served {
			m.proxy.expect(family)
		}
	}
}

// served are the families of a renderer.
func (m *Metrics) served(renderer string) []string {
	if families := m.families.Load(); families != nil {
		return (*families)[renderer]
	}
	return nil
}

// Synced observes the duration of a pass of a renderer. A full pass reads VPP and compares it with
// the desired state; a partial pass writes only changes.
func (m *Metrics) Synced(renderer string, took time.Duration, full bool) {
	kind := m.proxy.partial
	if full {
		kind = m.proxy.full
	}
	for _, family := range m.served(renderer) {
		m.proxy.sync.WithLabelValues(family).Observe(took.Seconds())
		kind.WithLabelValues(family).Observe(took.Seconds())
		m.proxy.lastSync.WithLabelValues(family).Set(seconds(m.clock()))
	}
}

// Queued sets the time at which a change was queued for a renderer.
func (m *Metrics) Queued(renderer string) {
	for _, family := range m.served(renderer) {
		m.proxy.lastQueued.WithLabelValues(family).Set(seconds(m.clock()))
	}
}

// Programmed observes the time from the trigger of an endpoint change in Kubernetes until VPP had
// it.
func (m *Metrics) Programmed(p report.Programming) {
	family := IPv4
	if p.IPv6 {
		family = IPv6
	}
	took, histogram := max(p.Latency, 0).Seconds(), m.proxy.programming.WithLabelValues(family)
	if with, ok := histogram.(prometheus.ExemplarObserver); ok && m.exemplars {
		with.ObserveWithExemplar(took, prometheus.Labels{"cause": strconv.FormatUint(p.Cause, 10)})
		return
	}
	histogram.Observe(took)
}

// Operations counts operations on VPP by outcome.
func (m *Metrics) Operations(renderer string, succeeded, failed, unknown int) {
	for outcome, n := range map[string]int{"succeeded": succeeded, "failed": failed, "unknown": unknown} {
		m.operations.WithLabelValues(renderer, outcome).Add(float64(max(n, 0)))
	}
}

// Healed counts repairs of a part by escalation step.
func (m *Metrics) Healed(part, step string, n int) {
	m.healing.WithLabelValues(part, step).Add(float64(max(n, 0)))
}

// Drifted counts entries in VPP that differed from the state written by a renderer.
func (m *Metrics) Drifted(renderer string, n int) {
	m.drift.WithLabelValues(renderer).Add(float64(max(n, 0)))
}

// Memory sets the size of VPP's main heap, its free part, and the number of objects that a renderer
// has not added because memory is low.
func (m *Metrics) Memory(renderer string, total, free, waiting int) {
	if total > 0 {
		m.heap.WithLabelValues("total").Set(float64(total))
		m.heap.WithLabelValues("free").Set(float64(free))
	}
	m.noMemory.WithLabelValues(renderer).Set(float64(waiting))
}

// VPPConnected counts a connection to VPP.
func (m *Metrics) VPPConnected() { m.connections.Inc() }

// InputErrors sets the number of invalid parts of Kubernetes objects.
func (m *Metrics) InputErrors(n int) { m.inputErrors.Set(float64(n)) }

// Unplaced sets the number of addresses of this node to which no interface of VPP leads.
func (m *Metrics) Unplaced(n int) { m.unplaced.Set(float64(n)) }

// Owner sets which load-balancer addresses this node owns, and which others there are.
func (m *Metrics) Owner(owns map[string]bool) {
	m.owner.Reset()
	for address, owner := range owns {
		value := 0.0
		if owner {
			value = 1
		}
		m.owner.WithLabelValues(address).Set(value)
	}
}

// Limited sets the number of services that are not served because of a limit.
func (m *Metrics) Limited(n int) { m.limited.Set(float64(n)) }

// Changed counts received changes of Services and EndpointSlices.
func (m *Metrics) Changed(services, slices int) {
	m.proxy.serviceChanges.Add(float64(max(services, 0)))
	m.proxy.endpointChanges.Add(float64(max(slices, 0)))
}

// Pending sets the number of changes of Services and EndpointSlices that have not reached VPP yet.
func (m *Metrics) Pending(services, slices int) {
	m.proxy.servicesPending.Set(float64(services))
	m.proxy.endpointsPending.Set(float64(slices))
}

// NoLocalEndpoints sets the number of service ports of an address family that drop traffic because
// a traffic policy requires a local endpoint and there is none.
func (m *Metrics) NoLocalEndpoints(ipv6 bool, internal, external int) {
	f := IPv4
	if ipv6 {
		f = IPv6
	}
	m.proxy.noLocal.WithLabelValues("internal", f).Set(float64(internal))
	m.proxy.noLocal.WithLabelValues("external", f).Set(float64(external))
}

// Probed counts the answers of "healthz" and "livez"; kube-proxy has no metric for other probes.
func (m *Metrics) Probed(probe string, status int) {
	switch probe {
	case "healthz":
		m.proxy.healthz.WithLabelValues(strconv.Itoa(status)).Inc()
	case "livez":
		m.proxy.livez.WithLabelValues(strconv.Itoa(status)).Inc()
	}
}

// seconds is a time in the unit of Prometheus, seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

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
