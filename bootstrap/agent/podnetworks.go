package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

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
