package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is the set of all metrics. It satisfies actors.Observer.
type Metrics struct {
	registry *prometheus.Registry
	proxy    *proxy
	mirror   *mirror
	sessions *natSessions

	operations  *prometheus.CounterVec
	healing     *prometheus.CounterVec
	drift       *prometheus.CounterVec
	inputErrors prometheus.Gauge
	watched     *watched
	families    map[string][]string
	clock       func() time.Time
}

// New returns a new set with a registry of its own.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), proxy: newProxy(), mirror: newMirror(), sessions: newNATSessions(), watched: &watched{}, clock: time.Now,
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "troupe_vpp_operations_total",
			Help: "Operations on VPP by renderer and outcome; unknown = no answer came, VPP is read again.",
		}, []string{"renderer", "outcome"}),
		healing: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "troupe_healing_total",
			Help: "What was done about what is wrong, by part and rung of the ladder: key = one object tried again, object = VPP read for one object, " +
				"downstream = VPP read and compared, full = everything worked out anew, subtree = actors restarted, exit = process ended.",
		}, []string{"part", "rung"}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "troupe_drift_total",
			Help: "Things that VPP did not hold as a renderer knew: somebody else has been there. They are repaired.",
		}, []string{"renderer"}),
		inputErrors: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "troupe_input_errors",
			Help: "Parts of the present Kubernetes objects that cannot be used.",
		}),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector(),
		m.operations, m.inputErrors, m.watched, m.healing, m.drift,
	)
	m.proxy.register(m.registry)
	m.mirror.register(m.registry)
	m.sessions.register(m.registry)
	return m
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Watch has the state of the agent read at every scrape; it replaces what was watched before.
func (m *Metrics) Watch(sources Sources) { m.watched.sources.Store(&sources) }

// Serves sets the address families whose services each renderer renders. kube-proxy has one sync loop per family: the passes of these renderers
// are counted as its syncs, those of any other renderer are not. It must be called before the first observation.
func (m *Metrics) Serves(families map[string][]string) {
	m.families = families
	for _, served := range families {
		for _, family := range served {
			m.proxy.expect(family)
		}
	}
}

// Synced observes the duration of a pass of a renderer: a full one reads VPP and compares it with the desired state, a partial one writes only
// what changed.
func (m *Metrics) Synced(renderer string, took time.Duration, full bool) {
	kind := m.proxy.partial
	if full {
		kind = m.proxy.full
	}
	for _, family := range m.families[renderer] {
		m.proxy.sync.WithLabelValues(family).Observe(took.Seconds())
		kind.WithLabelValues(family).Observe(took.Seconds())
		m.proxy.lastSync.WithLabelValues(family).Set(seconds(m.clock()))
	}
}

// Queued sets the time at which a change was queued for a renderer.
func (m *Metrics) Queued(renderer string) {
	for _, family := range m.families[renderer] {
		m.proxy.lastQueued.WithLabelValues(family).Set(seconds(m.clock()))
	}
}

// Programmed counts an endpoint change that reached VPP, with the time since Kubernetes stamped it.
func (m *Metrics) Programmed(latency time.Duration) {
	m.proxy.programming.WithLabelValues(IPv4).Observe(max(latency, 0).Seconds())
}

// Operations counts operations on VPP by outcome.
func (m *Metrics) Operations(renderer string, succeeded, failed, unknown int) {
	for outcome, n := range map[string]int{"succeeded": succeeded, "failed": failed, "unknown": unknown} {
		m.operations.WithLabelValues(renderer, outcome).Add(float64(max(n, 0)))
	}
}

// Healed counts what was done about something that was wrong with a part.
func (m *Metrics) Healed(part, rung string, n int) {
	m.healing.WithLabelValues(part, rung).Add(float64(max(n, 0)))
}

// Drifted counts what VPP did not hold as a renderer knew.
func (m *Metrics) Drifted(renderer string, n int) {
	m.drift.WithLabelValues(renderer).Add(float64(max(n, 0)))
}

// InputErrors sets the number of parts of Kubernetes objects that cannot be used.
func (m *Metrics) InputErrors(n int) { m.inputErrors.Set(float64(n)) }

// Changed counts changes of Services and of EndpointSlices that came in.
func (m *Metrics) Changed(services, slices int) {
	m.proxy.serviceChanges.Add(float64(max(services, 0)))
	m.proxy.endpointChanges.Add(float64(max(slices, 0)))
}

// Pending sets how many changes of Services and of EndpointSlices have not reached VPP yet.
func (m *Metrics) Pending(services, slices int) {
	m.proxy.servicesPending.Set(float64(services))
	m.proxy.endpointsPending.Set(float64(slices))
}

// NoLocalEndpoints sets how many service ports of an address family drop traffic for want of a local endpoint, by the policy that asks for
// one.
func (m *Metrics) NoLocalEndpoints(ipv6 bool, internal, external int) {
	f := IPv4
	if ipv6 {
		f = IPv6
	}
	m.proxy.noLocal.WithLabelValues("internal", f).Set(float64(internal))
	m.proxy.noLocal.WithLabelValues("external", f).Set(float64(external))
}

// Probed counts the answers of "healthz" and "livez"; others have no metric.
func (m *Metrics) Probed(probe string, status int) {
	switch probe {
	case "healthz":
		m.proxy.healthz.WithLabelValues(strconv.Itoa(status)).Inc()
	case "livez":
		m.proxy.livez.WithLabelValues(strconv.Itoa(status)).Inc()
	}
}

// seconds is a time as Prometheus counts it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
