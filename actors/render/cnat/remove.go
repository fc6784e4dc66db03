package cnat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// Remove satisfies render.Remover. Translations have a mark; settings and interfaces go if the
// agent has recorded them as its own. They stay if other clients have translations. A VPP without
// CNAT has nothing to remove.
func (*adapter) Remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
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
	want := &cnat.Want{SNAT: cnat.NoSNAT(), IPv4: true, Interfaces: map[uint32]*cnat.Tables{}}
	others := false
	for _, held := range state.Rows {
		others = others || !held.Ours
	}
	for _, index := range slices.Sorted(maps.Keys(state.Attached)) {
		if !others && r.Owned.HasNode(index) {
			want.Interfaces[index] = nil
		} else {
			r.Keep(owned.Object{Kind: owned.Node, Interface: index})
		}
	}
	if others || !ownsSNAT(state, r) {
		want.SNAT, want.Partial = state.SNAT, true
	}
	ops := cnat.Diff(state, want, true)
	if want.Partial { // networks belong to the addresses
		ops = slices.DeleteFunc(ops, func(op cnat.Op) bool { return op.Verb == cnat.SetTargets || op.Verb == cnat.SetSNAT })
	}
	return render.CarryOut(r, ops, func() (err error) {
		for _, result := range cnat.Apply(ctx, vpp, ops) {
			err = errors.Join(err, result.Err)
		}
		return err
	})
}

// ownsSNAT reports whether the agent has set the addresses for sources and excluded all networks.
func ownsSNAT(state *cnat.State, r *render.Removal) bool {
	all := true
	if addresses := owned.SNATOf(state.SNAT[0], state.SNAT[1]); state.SNAT != cnat.NoSNAT() && !r.Owned.Has(addresses) {
		r.Keep(addresses)
		all = false
	}
	for _, network := range slices.SortedFunc(maps.Keys(state.Excluded), netip.Prefix.Compare) {
		if o := (owned.Object{Kind: owned.Excluded, Value: network.String()}); !r.Owned.Has(o) {
			r.Keep(o)
			all = false
		}
	}
	return all
}
