package agent

import (
	"fmt"
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
	ports   service.NodePortAddresses
}

// keepHostRoutes starts the keepers of the host routes, if they are configured.
func (a *Agent) keepHostRoutes(serving service.Config) error {
	all, err := a.cfg.HostRoute.Keepers()
	if err != nil {
		return fmt.Errorf("hostRoute.gateway: %w", err)
	}
	a.hostRoutes.fixed, a.hostRoutes.ports = len(serving.ServiceCIDRs) > 0, serving.NodePortAddresses
	for _, cfg := range all {
		keeper := hostroute.New(cfg, hostroute.Host(cfg.Gateway), a.log.With("part", "host-route"))
		a.hostRoutes.keepers = append(a.hostRoutes.keepers, keeper)
		if a.hostRoutes.fixed {
			keeper.Route(serving.ServiceCIDRs)
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
	addresses := in.GetSelf().GetAddresses()
	node := &messages.NodeContext{Node: in.GetSelf(), Addresses: addresses}
	ported := slices.Concat(h.ports.Select(node, messages.IPFamily_IPV4), h.ports.Select(node, messages.IPFamily_IPV6))
	for _, keeper := range h.keepers {
		if in.GetSelf() != nil {
			keeper.Node(addresses, ported)
		}
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
