package agent

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/agent/backend"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

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
	page, err := backend.Ask[*status.ServicesPage](ctx, a.system, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return
	}
	byState := map[string]int{}
	for _, state := range api.ServiceStates() {
		byState[string(state)] = 0 // alerts compare values, and an absent series has none
	}
	var internal4, external4, internal6, external6 int
	limited := 0
	services := a.backend.Summaries(page)
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
