package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/bootstrap/page"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// httpServers are the two listeners. They open first, so that an address in use is found before the
// agent changes VPP, and serve once the actors can answer.
type httpServers struct {
	*server.Server
	served bool
}

// address is the address of the read-only server; "" = there is none.
func (h *httpServers) address() string {
	if h == nil || h.Addr() == nil {
		return ""
	}
	return h.Addr().String()
}

// listen opens the listeners. It runs before the actors, so that the metrics know the families
// before the first observation.
func (a *Agent) listen() error {
	a.metrics.Serves(a.rendering().Families())
	if a.cfg.API.MetricsExemplars {
		a.metrics.Exemplars()
	}
	s := server.New(a.backend, server.Config{
		HTTPAddress: a.cfg.API.HTTPAddress, ControlSocket: a.cfg.API.ControlSocket, Metrics: a.Metrics(), Probed: a.metrics.Probed,
		Health: a.keepsUp, AllowedHosts: append([]string{a.cfg.NodeName}, a.cfg.API.HTTPAllowedHosts...), Refused: a.refusals.note, Audit: a.audit,
		Redact: a.cfg.API.RedactMessages,
	}, a.log.With("part", "http"))
	pages, err := page.Handler(page.Config{Source: s.Public(), Node: a.cfg.NodeName, History: &a.history})
	if err != nil {
		return err
	}
	s.Use(pages)
	if err := s.Listen(); err != nil {
		return err
	}
	a.http = &httpServers{Server: s}
	a.onClose("HTTP listeners", func(context.Context) error {
		if a.http.served {
			return nil
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		return s.Serve(ended) // closes the listeners
	})
	return nil
}

// audit records a state-changing call in the journal.
func (a *Agent) audit(call server.Audit) {
	e := &messages.Event{Kind: "audit", Actor: address.RootName, Object: call.Path, Text: fmt.Sprintf("%s by %s: %d", call.Method, call.Who, call.Status)}
	if call.Status >= http.StatusBadRequest {
		e.Error = http.StatusText(call.Status)
	}
	a.system.Send(a.system.PID(address.Journal), e)
}

// serve starts the HTTP servers.
func (a *Agent) serve() error {
	a.metrics.Watch(metrics.Sources{
		Actors: a.system.Snapshot, Parts: a.partsOK, Stale: a.stale, Services: a.counted.states, HostRoutes: a.hostRoutes.numbers,
	})
	a.http.served = true
	a.own("HTTP servers", func(ctx context.Context) error {
		err := a.http.Serve(ctx)
		if err != nil {
			a.fail(err)
		}
		return err
	})
	a.log.Info("serving HTTP", "address", a.HTTPAddress(), "socket", a.cfg.API.ControlSocket)
	return nil
}

// serveTraces sends traces of changes to the collector, if there is one.
func (a *Agent) serveTraces() error {
	if a.cfg.API.OTLPEndpoint == "" {
		return nil
	}
	exporter := &metrics.Exporter{Endpoint: a.cfg.API.OTLPEndpoint, Node: a.cfg.NodeName, Events: a.backend.Events, Log: a.log.With("part", "traces")}
	a.own("traces", exporter.Run)
	return nil
}

// scrapeTimeout limits the query of a scrape for the services. Without an answer in time the scrape
// shows the numbers of the last one.
const scrapeTimeout = 100 * time.Millisecond

// counted holds the numbers of services of the last scrape.
type counted struct {
	byState atomic.Pointer[map[string]int]
}

// states returns the number of services by state, for metrics.Sources.
func (c *counted) states() map[string]int {
	if known := c.byState.Load(); known != nil {
		return maps.Clone(*known)
	}
	return nil
}

// scrape answers /metrics. It first updates the metrics that no component reports by itself.
func (a *Agent) scrape(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	a.count(ctx)
	cancel()
	a.metrics.Handler().ServeHTTP(w, r)
}

// count updates the numbers of services.
func (a *Agent) count(ctx context.Context) {
	page, err := askUntil[*status.ServicesPage](ctx, a.system, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return
	}
	byState := map[string]int{}
	for _, state := range api.ServiceStates() {
		byState[string(state)] = 0 // alerts compare values, and an absent series has none
	}
	var internal4, external4, internal6, external6 int
	limited := 0
	services := a.backend.summaries(page)
	for i, s := range page.Services {
		byState[string(services[i].State)]++
		if s.GetView().GetRefused() != "" {
			limited++
		}
		internal4 += int(s.GetView().GetNoLocalIpv4().GetInternal())
		external4 += int(s.GetView().GetNoLocalIpv4().GetExternal())
		internal6 += int(s.GetView().GetNoLocalIpv6().GetInternal())
		external6 += int(s.GetView().GetNoLocalIpv6().GetExternal())
	}
	a.counted.byState.Store(&byState)
	a.metrics.Limited(limited)
	a.metrics.Unplaced(len(page.Unplaced))
	if all, err := a.backend.Addresses(ctx); err == nil {
		owns := map[string]bool{}
		for _, one := range all.Items {
			owns[one.Address] = one.State == api.Owner
		}
		a.metrics.Owner(owns)
	}
	a.metrics.NoLocalEndpoints(false, internal4, external4)
	a.metrics.NoLocalEndpoints(true, internal6, external6)
	waiting := byState[string(api.ServicePending)] // a service and its slices are pending together
	a.metrics.Pending(waiting, waiting)
}

// stale returns the age of the state that is served without a source, for metrics.Sources.
func (a *Agent) stale() time.Duration {
	for _, p := range a.readiness.Load().Parts {
		if !p.AsOf.IsZero() {
			return time.Since(p.AsOf)
		}
	}
	return 0
}

// partsOK returns the readiness of all parts, for metrics.Sources.
func (a *Agent) partsOK() map[string]bool {
	parts := map[string]bool{}
	for _, p := range a.readiness.Load().Parts {
		parts[p.Name] = p.OK
	}
	return parts
}

// Names of further listeners (server.Refusal.Listener).
const (
	listenerHealthz    = "healthz"
	listenerHealthPort = "health-check-node-port"
	listenerMetrics    = "metrics"
)

// refusalInterval is the shortest time between two log lines about refusals of one kind, because
// clients decide how many there are.
const refusalInterval = time.Minute

// refusals counts refused requests and connections and logs some of them.
type refusals struct {
	metrics *metrics.Metrics
	log     *slog.Logger

	mu    sync.Mutex
	kinds map[[2]string]*refusalKind // by listener and reason
}

// refusalKind are the refusals of one listener and reason.
type refusalKind struct {
	logged   time.Time
	unlogged uint64 // number of refusals without a log line since then
}

func newRefusals(m *metrics.Metrics, log *slog.Logger) *refusals {
	return &refusals{metrics: m, log: log, kinds: map[[2]string]*refusalKind{}}
}

// note counts a refusal. It is safe for concurrent use.
func (r *refusals) note(refusal server.Refusal) {
	r.metrics.Refused(refusal.Listener, refusal.Why)
	if unlogged, due := r.due(refusal, time.Now()); due {
		r.log.Warn("HTTP client refused", "listener", refusal.Listener, "why", refusal.Why, "client", refusal.Client, "err", refusal.Text,
			"unlogged", unlogged)
	}
}

// due reports whether the log gets a line for a refusal, and the number of earlier refusals without
// a line.
func (r *refusals) due(refusal server.Refusal, now time.Time) (unlogged uint64, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{refusal.Listener, refusal.Why}
	kind := r.kinds[key]
	if kind == nil {
		kind = &refusalKind{}
		r.kinds[key] = kind
	}
	if !kind.logged.IsZero() && now.Sub(kind.logged) < refusalInterval {
		kind.unlogged++
		return 0, false
	}
	unlogged = kind.unlogged
	kind.logged, kind.unlogged = now, 0
	return unlogged, true
}

// tooManyConnections returns a function for a health-check server, which calls it when it closes a
// connection above its limit.
func (r *refusals) tooManyConnections(listener string) func() {
	return func() {
		r.note(server.Refusal{
			Listener: listener, Why: server.RefusedConnections, Text: "too many connections at the same time: the longest idle one is closed",
		})
	}
}

// sourceObserver passes deliveries of the source to node health, node sync, the simulated CNI,
// metrics and the journal.
type sourceObserver struct{ *Agent }

var _ kube.Observer = sourceObserver{}

func (a sourceObserver) NodeChanged(in *messages.NodeInput) {
	a.noteNode(in.GetSelf())
	a.hostRoutes.changed(in)
	a.podNetworks.changed(in)
	if a.cni != nil {
		a.cni.changed(in)
	}
}

func (a sourceObserver) ObjectsChanged(services, slices int) {
	a.stage.countChanges(services + slices)
	if services+slices > 0 {
		a.metrics.Changed(services, slices)
		for _, renderer := range a.renderers() {
			a.metrics.Queued(renderer)
		}
	}
}

// Health satisfies relay.Observer: it records the health of the source in the journal, and tells
// node sync whether nodes that are missing in the source were deleted.
func (a sourceObserver) Health(h kube.Health) {
	a.nodes.trust(h.OK)
	text := "everything can be read and used"
	switch {
	case !h.OK:
		text = "the source does not see what happens"
	case h.Reason != "":
		text = "something in the input cannot be used"
	}
	a.system.Send(a.system.PID(address.Journal), &messages.Event{Kind: "source", Actor: address.Registry, Text: text, Error: h.Reason})
}

// runSource runs the source. A source returns an error if it can never work; then the process ends.
func (a *Agent) runSource(r *kube.Relay) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := r.Run(ctx); err != nil {
			a.fail(err)
		}
		return nil
	}
}
