package routes

import (
	"context"
	"errors"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// remove removes the agent's routes. Their sources cannot be removed; the next start uses them
// again.
// A dry run does not see a route beneath another route of the agent.
func remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	for { // VPP shows a route only after the one above it has been removed
		state, err := routes.Read(ctx, vpp, nil, nil)
		if errors.Is(err, routes.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		ops := routes.Diff(state, nil, true)
		err = render.CarryOut(ctx, vpp, r, ops, routes.Apply)
		if len(ops) == 0 || err != nil || r.DryRun {
			return err
		}
	}
}
