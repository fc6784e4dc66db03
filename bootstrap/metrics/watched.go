package metrics

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Sources are functions that a scrape calls. Each may be nil, must be safe from any goroutine and
// must not wait for an actor, so that a hanging actor does not stop scrapes.
type Sources struct {
	// Actors returns the state of every actor.
	Actors func() []runtime.ActorState
	// Parts returns whether each part of the agent is ready, by name.
	Parts func() map[string]bool
	// Stale returns the age of the served state while the source does not see changes; 0 = it
	// sees them.
	Stale func() time.Duration
	// Services returns the number of services by state.
	Services func() map[string]int
	// HostRoutes returns the number of service CIDRs by the state of their route in the host.
	HostRoutes func() map[string]int
}

// watched collects the metrics that a scrape reads from Sources. It is unchecked (Describe sends
// nothing), because its metrics depend on the Sources.
type watched struct{ sources atomic.Pointer[Sources] }

// Descriptions of the metrics of Sources.
var (
	descActors    = describe("troupe_actors", "Actors by kind and state.", "kind", "state")
	descPending   = describe("troupe_actor_messages_pending", "Messages waiting in mailboxes.", "kind")
	descReceived  = describe("troupe_actor_messages_received_total", "Messages posted to actors.", "kind")
	descCoalesced = describe("troupe_actor_messages_coalesced_total", "Messages that replaced a waiting message of the same key.", "kind")
	descRestarts  = describe("troupe_actor_restarts_total", "New incarnations of actors.", "kind")
	descFailures  = describe("troupe_actor_failures_total", "Failures of actors.", "kind")
	descBusy      = describe("troupe_actor_busy_seconds_total", "Time that actors spent handling messages.", "kind")
	descReady     = describe("troupe_ready", "1 if the part of the agent is ready.", "part")
	descStale     = describe("troupe_source_stale_seconds", "Age of the state that is served while the Kubernetes source does not see changes; 0 = it sees them.")
	descServices  = describe("troupe_services", "Services by state.", "state")
	descRoutes    = describe("troupe_host_routes", "Service CIDRs by their route in the host: kept = a route of the agent, foreign = a route of another owner, failed = no route.", "state")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func (*watched) Describe(chan<- *prometheus.Desc) {}

func (w *watched) Collect(to chan<- prometheus.Metric) {
	s := w.sources.Load()
	if s == nil {
		return
	}
	if s.Actors != nil {
		collectActors(to, s.Actors())
	}
	if s.Parts != nil {
		for part, ok := range s.Parts() {
			to <- prometheus.MustNewConstMetric(descReady, prometheus.GaugeValue, one(ok), part)
		}
	}
	if s.Stale != nil {
		to <- prometheus.MustNewConstMetric(descStale, prometheus.GaugeValue, s.Stale().Seconds())
	}
	if s.Services != nil {
		for state, n := range s.Services() {
			to <- prometheus.MustNewConstMetric(descServices, prometheus.GaugeValue, float64(n), state)
		}
	}
	if s.HostRoutes != nil {
		for state, n := range s.HostRoutes() {
			to <- prometheus.MustNewConstMetric(descRoutes, prometheus.GaugeValue, float64(n), state)
		}
	}
}

// collectActors sums the numbers of actors by kind, because labels for each service would be too
// many.
func collectActors(to chan<- prometheus.Metric, actors []runtime.ActorState) {
	counts := map[[2]string]int{}
	sums := map[string]*runtime.ActorState{}
	for i := range actors {
		a := &actors[i]
		counts[[2]string{a.Kind, string(a.State)}]++
		sum := sums[a.Kind]
		if sum == nil {
			sum = &runtime.ActorState{}
			sums[a.Kind] = sum
		}
		sum.User += a.User
		sum.Posted += a.Posted
		sum.Coalesced += a.Coalesced
		sum.Restarts += a.Restarts
		sum.Panics += a.Panics
		sum.Busy += a.Busy
	}
	for key, n := range counts {
		to <- prometheus.MustNewConstMetric(descActors, prometheus.GaugeValue, float64(n), key[0], key[1])
	}
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[kind]
		to <- prometheus.MustNewConstMetric(descPending, prometheus.GaugeValue, float64(sum.User), kind)
		for desc, value := range map[*prometheus.Desc]float64{
			descReceived: float64(sum.Posted), descCoalesced: float64(sum.Coalesced), descRestarts: float64(sum.Restarts),
			descFailures: float64(sum.Panics), descBusy: sum.Busy.Seconds(),
		} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, kind)
		}
	}
}

// newRefused makes the counter of refused HTTP clients. The series of all reasons begin at 0, because
// an alert on an increase does not see the first value of a series.
func newRefused(to maker) *prometheus.CounterVec {
	refused := to.counters("troupe_http_refused_total", "HTTP requests and connections refused, by listener and reason: "+
		"host = the host of the request does not belong to the agent; origin = a page of another site; address = a request for state that does not come over loopback; "+
		"traces = too many traces at the same time; connections = closed to make room above the limit.", "listener", "why")
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

// mirror holds the metrics of the local mirror.
type mirror struct {
	serving  prometheus.Gauge
	saved    prometheus.Gauge
	saves    prometheus.Counter
	notSaved *prometheus.CounterVec
}

// newMirror creates the series of all reasons with 0, so that alerts on increases work from the
// first one.
func newMirror(to maker) *mirror {
	m := &mirror{
		serving: to.gauge("troupe_mirror_serving", "1 while the agent uses the local mirror instead of the Kubernetes source."),
		saved:   to.gauge("troupe_mirror_saved_timestamp_seconds", "Time at which this process last saved the local mirror; 0 = it has not."),
		saves:   to.counter("troupe_mirror_saves_total", "States saved in the local mirror."),
		notSaved: to.counters("troupe_mirror_refused_total", "States that did not replace the local mirror: failed = the write failed; "+
			"empty = the state has no service; foreign = the state belongs to another cluster, and the agent kept the old mirror under another name.", "why"),
	}
	for _, why := range []string{"failed", "empty", "foreign"} {
		m.notSaved.WithLabelValues(why)
	}
	return m
}

// MirrorServing reports whether the agent uses the local mirror instead of the Kubernetes source.
func (m *Metrics) MirrorServing(on bool) { m.mirror.serving.Set(one(on)) }

// MirrorSaved counts a state saved in the local mirror.
func (m *Metrics) MirrorSaved(at time.Time) {
	m.mirror.saves.Inc()
	m.mirror.saved.Set(seconds(at))
}

// MirrorNotSaved counts a state that did not replace the local mirror, by the reason.
func (m *Metrics) MirrorNotSaved(why string) { m.mirror.notSaved.WithLabelValues(why).Inc() }
