package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render/addresses"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// announcing returns the settings of the renderer of virtual routers; nil = VPP answers for no
// address.
func (a *Agent) announcing() *addresses.Config {
	if !a.cfg.Addresses.Enabled {
		return nil
	}
	return &addresses.Config{Interval: a.cfg.Addresses.Interval.Duration(), Made: a.made}
}

// Addresses satisfies api.Reader.
func (b backend) Addresses(ctx context.Context) (*api.Addresses, error) {
	out := &api.Addresses{Page: api.Page[api.Address]{Items: []api.Address{}}}
	if !b.agent.cfg.Addresses.Enabled {
		return out, nil
	}
	all, err := ask[[]addresses.Announced](ctx, b.agent.system, address.Renderer(addresses.Name), &addresses.Query{})
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		one := api.Address{
			Address: a.Address.String(), Services: a.Services, State: api.NoRouter, Since: a.Since, Router: a.Key.String(), Interface: a.Interface, Why: a.Why,
		}
		if h := a.Held; h != nil && h.Ours {
			one.State, one.Priority = "backup", uint32(h.Priority)
			switch {
			case !h.Running():
				one.State = "stopped"
			case h.Owner():
				one.State = api.Owner
			}
		}
		out.Items = append(out.Items, one)
	}
	return out, nil
}

// ChangeAddresses satisfies api.Controller.
func (b backend) ChangeAddresses(ctx context.Context, request api.AddressesRequest) error {
	if !b.agent.cfg.Addresses.Enabled {
		return fmt.Errorf("%w: addresses.enabled is false", api.ErrUnsupported)
	}
	_, err := ask[*addresses.Left](ctx, b.agent.system, address.Renderer(addresses.Name), &addresses.Leave{Back: !request.Leave})
	return err
}

// answering says in words which node gets packets from outside to a load-balancer address; none =
// it is no address of a pool.
func (b backend) answering(ctx context.Context, addr netip.Addr) []string {
	all, err := b.Addresses(ctx)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(all.Items, func(a api.Address) bool { return a.Address == addr.String() })
	if i < 0 {
		return nil
	}
	switch a := &all.Items[i]; {
	case a.State == api.Owner:
		return []string{"VPP of this node answers ARP or ND for it, since " + api.Clock(a.Since)}
	case a.Why != "":
		return []string{"VPP of this node does not answer ARP or ND for it: " + a.Why}
	default:
		return []string{"VPP of another node answers ARP or ND for it; this node has priority " + fmt.Sprint(a.Priority)}
	}
}
