package backend

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/packet"
	"github.com/troupe-vpp/troupe/bootstrap/show"
	"github.com/troupe-vpp/troupe/messages"
)

// Packet satisfies api.Reader. Only the services that claim the address are looked at, so that
// 10,000 others cost little.
func (b Backend) Packet(ctx context.Context, source, destination string) (*api.Packet, error) {
	p, err := packet.Parse(source, destination)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	w, err := b.packetWorld(ctx)
	if err != nil {
		return nil, err
	}
	page, err := ask[*status.ServicesPage](ctx, b.system(), address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil, err
	}
	details := map[string]*api.ServiceDetail{}
	for _, s := range page.Services {
		if !packet.Claims(s.GetView(), p.Destination.Addr()) {
			continue
		}
		w.Views = append(w.Views, s.GetView())
		if details[s.GetKey()], err = b.Service(ctx, s.GetKey()); err != nil {
			return nil, err
		}
	}
	w.Wanted = func(key string) []show.Row { return details[key].Rendered }
	w.Held = func(key string) []show.Row { return details[key].InVPP }
	w.Approximations = func(key string) []show.Approximation { return details[key].Approximations }
	return packet.Explain(p, w), nil
}

// packetWorld is this node, without services.
func (b Backend) packetWorld(ctx context.Context) (*packet.World, error) {
	serving, err := b.agent.Config.Services.Serving()
	if err != nil {
		return nil, err
	}
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	if len(serving.ServiceCIDRs) == 0 {
		for _, text := range world.Node.GetServiceCidrs() {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				serving.ServiceCIDRs = append(serving.ServiceCIDRs, prefix)
			}
		}
	}
	serving.ClusterCIDRs = serving.PodNetworks(world.Node.GetNodes())
	node := &messages.NodeContext{Node: world.Node.GetSelf(), Addresses: slices.Clone(world.Node.GetSelf().GetAddresses())}
	for _, text := range world.Interfaces.GetNodeAddresses() {
		ip, _, _ := strings.Cut(text, "/")
		node.Addresses = append(node.Addresses, ip)
	}
	return &packet.World{Node: node, Config: serving}, nil
}
