package backend

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// Nodes satisfies api.Reader: the nodes of the store, or the nodes of Kubernetes without a store.
func (b Backend) Nodes(ctx context.Context) (*api.Nodes, error) {
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	services, err := ask[*status.ServicesPage](ctx, b.system(), address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil, err
	}
	out := &api.Nodes{Self: b.agent.Config.NodeName, Claim: "none", Renderer: b.agent.Choice(), Items: []api.Node{}, Approximations: approximations(services.Services)}
	if cluster := world.Cluster; cluster != nil {
		out.Claim, out.Reason, out.Connected = claimWord(cluster.GetClaim()), cluster.GetReason(), cluster.GetConnected()
		for _, name := range slices.Sorted(maps.Keys(cluster.GetNodes())) {
			n := cluster.GetNodes()[name]
			id := n.GetId()
			if name == cluster.GetSelf() {
				// from an earlier process; unconfirmed until the claim is held
				id = cmp.Or(id, cluster.GetId())
			}
			out.Items = append(out.Items, api.Node{
				Name: name, ID: id, VPPAddresses: append([]string{}, n.GetVppAddresses()...), ManagementAddresses: append([]string{}, n.GetManagementAddresses()...),
				PodCIDRs: append([]string{}, n.GetPodCidrs()...),
			})
		}
		return out, nil
	}
	for _, name := range slices.Sorted(maps.Keys(world.Node.GetNodes())) {
		n := world.Node.GetNodes()[name]
		out.Items = append(out.Items, api.Node{
			Name: name, VPPAddresses: []string{}, ManagementAddresses: append([]string{}, n.GetAddresses()...), PodCIDRs: append([]string{}, n.GetPodCidrs()...),
		})
	}
	return out, nil
}

// claimWord is a claim state in the API.
func claimWord(c messages.ClaimState) string {
	switch c {
	case messages.ClaimState_CLAIM_HELD:
		return "held"
	case messages.ClaimState_CLAIM_FENCED:
		return "fenced"
	default:
		return "pending"
	}
}

// Sessions satisfies api.Reader. It returns the latest observation of the agent, so that clients
// cost VPP nothing.
func (b Backend) Sessions(context.Context) (*api.Sessions, error) {
	table := b.agent.Metrics.LastSessions()
	if table == nil {
		return nil, fmt.Errorf("%w: the agent has not read the NAT sessions of VPP yet", api.ErrUnavailable)
	}
	out := &api.Sessions{Time: table.At, BusiestWorker: table.Usage.Busiest, Limit: table.Limit, Alarm: table.Alarm, Protocols: []api.ProtocolSessions{}}
	for p := range sessions.Protocols {
		if !table.Survey.Known {
			break
		}
		count := table.Survey.By[p]
		out.Protocols = append(out.Protocols, api.ProtocolSessions{Protocol: p.String(), Sessions: count.Sessions, Expired: count.Expired})
	}
	return out, nil
}
