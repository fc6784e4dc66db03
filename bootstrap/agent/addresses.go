package agent

import (
	"context"
	"fmt"

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
