package nat44

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// Remove satisfies render.Remover: access lists go after the rows that they protect.
func (*adapter) Remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	return errors.Join(removeRows(ctx, vpp, r), removeLists(ctx, vpp, r))
}

// removeRows removes the agent's configuration from NAT44.
func removeRows(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	state, err := nat44.Read(ctx, vpp)
	if err != nil || !state.Enabled {
		return err
	}
	ops := nat44.Diff(state, nothing(state, r.Pool), true)
	return render.CarryOut(r, ops, func() (err error) {
		for _, result := range nat44.Apply(ctx, vpp, ops) {
			err = errors.Join(err, result.Err)
		}
		return err
	})
}

// nothing is the desired state after clean-up. Rows of other clients stay, and so do forwarding and
// timeouts, which are harmless.
func nothing(state *nat44.State, pool []netip.Addr) *nat44.Want {
	want := &nat44.Want{Globals: nat44.Globals{Timeouts: state.Timeouts}, Interfaces: map[uint32]bool{}, Outputs: map[uint32]bool{}}
	if len(state.Foreign) > 0 {
		return want // the rows of other clients need the addresses and roles
	}
	want.Retired, want.RetiredPool = state.TwiceNAT, slices.Concat(pool, state.TwiceNAT)
	for index := range state.Roles {
		want.Interfaces[index] = false
	}
	for index := range state.Output {
		want.Outputs[index] = false
	}
	return want
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
	return render.CarryOut(r, ops, func() (err error) {
		for _, result := range acl.Apply(ctx, vpp, ops) {
			err = errors.Join(err, result.Err)
		}
		return err
	})
}
