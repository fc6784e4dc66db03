package cnat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// remove removes the agent's objects. Translations and source NAT have marks; the nodes on
// interfaces go if the agent has recorded them as its own. Source NAT and nodes stay if another
// client of VPP uses CNAT. A VPP without CNAT has nothing to remove.
func remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	indexes, err := cnat.Interfaces(ctx, vpp)
	if err != nil {
		return fmt.Errorf("clean up CNAT: %w", err)
	}
	state, err := cnat.Read(ctx, vpp, false, indexes, nil)
	if errors.Is(err, link.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean up CNAT: %w", err)
	}
	for _, index := range slices.Sorted(maps.Keys(state.Attached)) {
		if !r.Owned.HasNode(index) {
			r.Keep(owned.Object{Kind: owned.Node, Interface: index}.String())
			delete(state.Attached, index)
		}
	}
	for _, object := range state.Theirs() {
		r.Keep(object)
	}
	ops := cnat.Removal(state)
	return render.CarryOut(ctx, vpp, r, ops, cnat.Apply)
}
