package agent

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// vppSocket returns the sockets of VPP; it starts a simulated VPP if configured.
func (a *Agent) vppSocket() (apiSocket, statsSocket string, err error) {
	if a.cfg.VPP.Mode != config.VPPSimulated {
		return a.cfg.VPP.APISocket, a.cfg.VPP.StatsSocket, nil
	}
	return a.simulateVPP()
}

// listening makes the reader of the ports on which the node listens; nil = the configuration does
// not reserve them, or VPP is simulated.
func (a *Agent) listening() func(time.Time) []string {
	if !a.cfg.Services.ReserveListening || a.cfg.VPP.Mode == config.VPPSimulated {
		return nil
	}
	return newListening("/proc", a.log.With("part", "interfaces")).Read
}

// readStatistics gives the actors the readers of VPP's statistics, unless the configuration has no
// statistics socket.
func readStatistics(socket string, deps *actors.Deps) {
	if socket == "" {
		return
	}
	deps.OtherProtocols = interfaces.NewOtherProtocols(socket)
	deps.Heap = func() stats.Source[heap.State] { return heap.NewStatistics(socket) }
	deps.SessionStats, deps.SessionSigns = sessions.NewReader(socket), sessions.NewSignsReader(socket)
}

// ownMemory is the memory of the agent besides the frontends and backends of services, in bytes:
// the runtime, the objects of the cluster, HTTP.
const ownMemory = 100 << 20

// memoryRoom returns the number of bytes for services in a process with this memory limit; 0 =
// there is no limit.
func memoryRoom(limit int64) int {
	if limit == math.MaxInt64 {
		return 0
	}
	return int(max(limit-ownMemory, 1<<20))
}

// podNetworks checks the pod networks; the zero value has no result.
type podNetworks struct {
	serving service.Config
	result  atomic.Pointer[string]
}

// changed compares the pod networks of the agent with the Nodes and ServiceCIDRs of the cluster.
func (p *podNetworks) changed(in *messages.NodeInput) {
	if len(p.serving.ClusterCIDRs) == 0 && !p.serving.NodesPodNetworks {
		return
	}
	text := podNetworksText(&p.serving, in)
	p.result.Store(&text)
}

// parts returns the line of /readyz?verbose. Doubtful pod networks do not make the node unready,
// because its services are in VPP.
func (p *podNetworks) parts() []api.Part {
	result := p.result.Load()
	if result == nil {
		return nil
	}
	return []api.Part{{Name: "pod-networks", OK: true, Reason: *result}}
}

// podNetworksText names the pod networks, or the first problem with them.
func podNetworksText(serving *service.Config, in *messages.NodeInput) string {
	networks := serving.PodNetworks(in.GetNodes())
	if len(networks) == 0 {
		return "warning: no Node has spec.podCIDRs: name the networks of pods in services.clusterCIDRs"
	}
	ranges := serving.ServiceCIDRs
	if len(ranges) == 0 {
		ranges = service.Networks(in.GetServiceCidrs())
	}
	for _, network := range networks {
		if i := slices.IndexFunc(ranges, network.Overlaps); i >= 0 {
			return fmt.Sprintf("warning: %s of pods (services.clusterCIDRs) overlaps %s of services", network, ranges[i])
		}
	}
	for _, own := range service.Networks(in.GetSelf().GetPodCidrs()) {
		if !slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Bits() <= own.Bits() && n.Contains(own.Addr()) }) {
			return fmt.Sprintf("warning: services.clusterCIDRs %v do not contain spec.podCIDRs %s of this node", networks, own)
		}
	}
	return fmt.Sprint(networks)
}

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
