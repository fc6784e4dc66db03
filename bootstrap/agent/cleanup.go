package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// cleanUp takes our rows, the hairpin address, the NAT addresses of external configuration, the interface roles, the access lists and our
// routes out of VPP (--cleanup-on-exit). It runs when the actors are gone, over a connection of its own, and gives up with ctx: a node that cannot be reached is cleaned by nobody.
func (a *Agent) cleanUp(ctx context.Context, config link.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	up, done := make(chan struct{}, 1), make(chan error, 1)
	vpp := link.New(config, a.log.With("part", "clean-up"))
	go func() {
		done <- vpp.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				hint(up)
			}
		})
	}()
	defer func() {
		cancel()
		<-done
	}()
	select {
	case <-up:
	case <-ctx.Done():
		return fmt.Errorf("no connection to VPP: %w", ctx.Err())
	}
	operations := 0
	var errs []error
	var pool []netip.Addr
	if a.outside != nil {
		pool = natAddresses(ctx, a.outside)
	}
	removeNAT := func(ctx context.Context, vpp link.Caller) (int, error) { return removeRows(ctx, vpp, pool) }
	for _, remove := range []func(context.Context, link.Caller) (int, error){removeNAT, removeLists, removeRoutes} { // lists behind the rows that rely on them
		n, err := remove(ctx, vpp)
		operations, errs = operations+n, append(errs, err)
	}
	a.log.Info("cleaned up", "operations", operations)
	return errors.Join(errs...)
}

// removeRows takes everything out of NAT44 that is ours; pool are NAT addresses that are.
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

// removeLists takes our access lists from the interfaces, which are left with those of others, and deletes them.
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

// removeRoutes takes our routes out of VPP. Sources cannot be given back; they are used again.
func removeRoutes(ctx context.Context, vpp link.Caller) (operations int, err error) {
	for { // a route beneath another one of ours is only seen when that has gone
		state, err := routes.Read(ctx, vpp)
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

// nothing is what VPP should hold of us when we are gone. Rows of others stay; so do forwarding and timeouts, which hurt nobody.
func nothing(state *nat44.State, pool []netip.Addr) *nat44.Want {
	want := &nat44.Want{Globals: nat44.Globals{Timeouts: state.Timeouts}, Interfaces: map[uint32]bool{}, Outputs: map[uint32]bool{}}
	if len(state.Foreign) > 0 {
		return want // somebody else uses the plugin, and with it the addresses and roles
	}
	want.Retired, want.RetiredPool = state.TwiceNAT, pool
	for index := range state.Roles {
		want.Interfaces[index] = false
	}
	for index := range state.Output {
		want.Outputs[index] = false
	}
	return want
}
