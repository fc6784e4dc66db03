package agent

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
	"github.com/troupe-vpp/troupe/kube/service"
)

// hostRoutes are the routes of the host that lead to VPP; the zero value has none.
type hostRoutes struct {
	keeper *hostroute.Keeper
	fixed  bool // the configuration has the networks
}

// keepHostRoutes starts the keeper of the host routes, if they are configured.
func (a *Agent) keepHostRoutes(serviceCIDRs []netip.Prefix) error {
	cfg, ok, err := a.cfg.HostRoute.Keeper()
	if err != nil || !ok {
		return err
	}
	keeper := hostroute.New(cfg, hostroute.Host(cfg.Gateway), a.log.With("part", "host-route"))
	a.hostRoutes = hostRoutes{keeper: keeper, fixed: len(serviceCIDRs) > 0}
	if a.hostRoutes.fixed {
		keeper.Route(serviceCIDRs)
	}
	if a.cfg.CleanupOnExit {
		a.onClose("host routes", keeper.Remove)
	}
	a.own("keeper of host routes", keeper.Run)
	return nil
}

// changed sets the networks to the service CIDRs of the cluster, unless they are configured. It
// does not block.
func (h hostRoutes) changed(serviceCIDRs []string) {
	if h.keeper != nil && !h.fixed {
		h.keeper.Route(service.Networks(serviceCIDRs))
	}
}

// parts returns the line of /readyz?verbose. A missing route does not make the node unready,
// because services still work for pods.
func (h hostRoutes) parts() []api.Part {
	if h.keeper == nil {
		return nil
	}
	return []api.Part{{Name: "host-route", OK: true, Reason: h.keeper.Status().Problem}}
}

// numbers returns the number of service CIDRs by state, for metrics.Sources.
func (h hostRoutes) numbers() map[string]int {
	if h.keeper == nil {
		return nil
	}
	s := h.keeper.Status()
	return map[string]int{"kept": s.Kept, "foreign": s.Foreign, "failed": s.Failed}
}
