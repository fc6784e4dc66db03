package backend

import (
	"context"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
)

// Packet satisfies api.Reader. It reads the rows only of the services that claim the address, so
// that 10,000 others cost little.
func (b Backend) Packet(ctx context.Context, source, destination string) (*api.Packet, error) {
	p, err := parsePacket(source, destination)
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
	for _, s := range page.Services {
		if !claims(s.GetView(), p.Destination.Addr()) {
			continue
		}
		w.views = append(w.views, s.GetView())
		if w.details[s.GetKey()], err = b.Service(ctx, s.GetKey()); err != nil {
			return nil, err
		}
	}
	w.faults = b.faults(page)
	out := explainPacket(p, w)
	out.Read = page.Read
	return out, nil
}

// packetWorld is this node, without services.
func (b Backend) packetWorld(ctx context.Context) (*packetWorld, error) {
	serving, err := b.agent.Config.Services.Serving()
	if err != nil {
		return nil, err
	}
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	if len(serving.ServiceCIDRs) == 0 {
		serving.ServiceCIDRs = service.Networks(world.Node.GetServiceCidrs())
	}
	serving.ClusterCIDRs = serving.PodNetworks(world.Node.GetNodes())
	node := desired.NodeContext(world.Node.GetSelf(), world.Interfaces.GetNodeAddresses())
	return &packetWorld{node: node, config: serving, details: map[string]*api.ServiceDetail{}}, nil
}
