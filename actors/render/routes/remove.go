package routes

import (
	"context"
	"errors"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// Remove satisfies render.Remover. Route sources cannot be removed; the next start uses them again.
func (*adapter) Remove(ctx context.Context, vpp link.Caller, _ []netip.Addr) (operations int, err error) {
	for { // VPP shows a route only after the one above it has been removed
		state, err := routes.Read(ctx, vpp, nil, nil)
		if errors.Is(err, routes.ErrUnsupported) {
			return operations, nil
		}
		if err != nil {
			return operations, err
		}
		results := routes.Apply(ctx, vpp, routes.Diff(state, nil, true))
		for _, result := range results {
			err = errors.Join(err, result.Err)
		}
		if operations += len(results); len(results) == 0 || err != nil {
			return operations, err
		}
	}
}
