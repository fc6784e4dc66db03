package agent

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
)

// hostRoutes are the routes of the host that lead to VPP; the zero value has none.
type hostRoutes struct {
	keeper *hostroute.Keeper
	fixed  bool // the networks are those of the configuration
}

// keepHostRoutes starts to keep them, if they are configured.
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

// changed takes the networks that the cluster says, unless they are configured. It does not block.
func (h hostRoutes) changed(serviceCIDRs []string) {
	if h.keeper == nil || h.fixed {
		return
	}
	var networks []netip.Prefix
	for _, text := range serviceCIDRs {
		if n, err := netip.ParsePrefix(text); err == nil { // the API server admits no other
			networks = append(networks, n)
		}
	}
	h.keeper.Route(networks)
}

// parts returns what /readyz?verbose says. What is wrong with a route of the host does not make the
// node unready: pods are served.
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
