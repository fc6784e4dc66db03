package nat44

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// Remove satisfies render.Remover: access lists go after the rows that they protect.
func (*adapter) Remove(ctx context.Context, vpp link.Caller, pool []netip.Addr) (operations int, err error) {
	removed, err := removeRows(ctx, vpp, pool)
	operations, failed := removeLists(ctx, vpp)
	return removed + operations, errors.Join(err, failed)
}

// removeRows removes the agent's configuration from NAT44; pool are the NAT addresses that it owns.
func removeRows(ctx context.Context, vpp link.Caller, pool []netip.Addr) (operations int, err error) {
	state, err := nat44.Read(ctx, vpp)
	if err != nil || !state.Enabled {
		return 0, err
	}
	ops := nat44.Diff(state, nothing(state, pool), true)
	for _, result := range nat44.Apply(ctx, vpp, ops) {
		err = errors.Join(err, result.Err)
	}
	return len(ops), err
}

// nothing is the desired state after clean-up. Rows of others stay, and so do forwarding and
// timeouts, which are harmless.
func nothing(state *nat44.State, pool []netip.Addr) *nat44.Want {
	want := &nat44.Want{Globals: nat44.Globals{Timeouts: state.Timeouts}, Interfaces: map[uint32]bool{}, Outputs: map[uint32]bool{}}
	if len(state.Foreign) > 0 {
		return want // the rows of others need the addresses and roles
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

// removeLists detaches the agent's access lists from the interfaces, which keep those of others,
// and deletes them.
func removeLists(ctx context.Context, vpp link.Caller) (operations int, err error) {
	state, err := acl.Read(ctx, vpp)
	if errors.Is(err, link.ErrUnsupported) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ops := acl.Diff(state, &acl.Want{}, true)
	for _, result := range acl.Apply(ctx, vpp, ops) {
		err = errors.Join(err, result.Err)
	}
	return len(ops), err
}
