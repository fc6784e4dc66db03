package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// hostRoutes are the routes of the host that lead to VPP; the zero value has none.
type hostRoutes struct {
	keepers []*hostroute.Keeper // one for each address family
	fixed   bool                // the configuration has the networks
}

// keepHostRoutes starts the keepers of the host routes, if they are configured.
func (a *Agent) keepHostRoutes(serviceCIDRs []netip.Prefix) error {
	all, err := a.cfg.HostRoute.Keepers()
	if err != nil {
		return fmt.Errorf("hostRoute.gateway: %w", err)
	}
	a.hostRoutes.fixed = len(serviceCIDRs) > 0
	for _, cfg := range all {
		keeper := hostroute.New(cfg, hostroute.Host(cfg.Gateway), a.log.With("part", "host-route"))
		a.hostRoutes.keepers = append(a.hostRoutes.keepers, keeper)
		if a.hostRoutes.fixed {
			keeper.Route(serviceCIDRs)
		}
		if a.cfg.CleanupOnExit {
			a.onClose("host routes", keeper.Remove)
		}
		a.own("keeper of host routes", keeper.Run)
	}
	return nil
}

// changed sets the addresses of the node, and the networks to the service CIDRs of the cluster,
// unless they are configured. It does not block.
func (h hostRoutes) changed(in *messages.NodeInput) {
	for _, keeper := range h.keepers {
		keeper.Node(in.GetSelf().GetAddresses())
		if !h.fixed {
			keeper.Route(service.Networks(in.GetServiceCidrs()))
		}
	}
}

// parts returns the line of /readyz?verbose. A missing route does not make the node unready,
// because services still work for pods.
func (h hostRoutes) parts() []api.Part {
	if len(h.keepers) == 0 {
		return nil
	}
	var problems []string
	for _, keeper := range h.keepers {
		if p := keeper.Status().Problem; p != "" && !slices.Contains(problems, p) {
			problems = append(problems, p)
		}
	}
	return []api.Part{{Name: "host-route", OK: true, Reason: strings.Join(problems, "; ")}}
}

// numbers returns the number of service CIDRs by state, for metrics.Sources.
func (h hostRoutes) numbers() map[string]int {
	if len(h.keepers) == 0 {
		return nil
	}
	n := map[string]int{}
	for _, keeper := range h.keepers {
		s := keeper.Status()
		n["kept"], n["foreign"], n["failed"] = n["kept"]+s.Kept, n["foreign"]+s.Foreign, n["failed"]+s.Failed
	}
	return n
}
