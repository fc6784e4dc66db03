package nat44

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// remove removes the agent's objects: access lists go after the rows that they protect.
func remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	return errors.Join(removeRows(ctx, vpp, r), removeLists(ctx, vpp, r))
}

// removeRows removes the agent's configuration from NAT44: rows by their tag, and the roles and
// addresses that the agent has recorded as its own. It changes nothing of the plugin as a whole.
func removeRows(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	state, err := nat44.Read(ctx, vpp)
	if err != nil || !state.Enabled {
		return err
	}
	var ops []nat44.Op
	for _, op := range nat44.Diff(state, &nat44.Want{Globals: nat44.Globals{Timeouts: state.Timeouts}}, true) {
		if op.Verb == nat44.DelRow {
			ops = append(ops, op)
		}
	}
	ops = append(ops, removeOwned(state, r)...)
	return render.CarryOut(ctx, vpp, r, ops, nat44.Apply)
}

// removeOwned removes roles and addresses that the record has. All of them stay while VPP has rows
// of other clients, which need them.
func removeOwned(state *nat44.State, r *render.Removal) (ops []nat44.Op) {
	mine := func(o owned.Object) bool {
		has := len(state.Foreign) == 0 && r.Owned.Has(o)
		if !has {
			r.Keep(o.String())
		}
		return has
	}
	for _, index := range slices.Sorted(maps.Keys(state.Roles)) {
		held, remove := state.Roles[index], nat44.Roles(0)
		for _, role := range []nat44.Roles{nat44.Inside, nat44.Outside} {
			// the inside role alone would be dangerous
			alone := role == nat44.Outside && held&^remove&nat44.Inside != 0
			if held&role != 0 && mine(owned.RoleOf(index, role == nat44.Inside)) && !alone {
				remove |= role
			}
		}
		if remove != 0 {
			ops = append(ops, nat44.Op{Verb: nat44.DelRoles, Interface: index, Roles: remove})
		}
	}
	for _, addr := range state.TwiceNAT {
		if mine(owned.Object{Kind: owned.TwiceNAT, Value: addr.String()}) {
			ops = append(ops, nat44.Op{Verb: nat44.DelAddress, Addr: addr})
		}
	}
	for _, addr := range state.Pool {
		if mine(owned.Object{Kind: owned.Pool, Value: addr.String()}) {
			ops = append(ops, nat44.Op{Verb: nat44.DelPool, Addr: addr})
		}
	}
	for _, index := range slices.Sorted(maps.Keys(state.Output)) {
		if mine(owned.Object{Kind: owned.Output, Interface: index}) {
			ops = append(ops, nat44.Op{Verb: nat44.DelOutput, Interface: index})
		}
	}
	return ops
}

// removeLists detaches the agent's access lists from the interfaces and deletes them. Lists of
// other clients stay.
func removeLists(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	state, err := acl.Read(ctx, vpp)
	if errors.Is(err, link.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	ops := acl.Diff(state, &acl.Want{}, true)
	return render.CarryOut(ctx, vpp, r, ops, acl.Apply)
}
