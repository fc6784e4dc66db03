package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// cleanUp removes the agent's rows and translations, the hairpin address, the NAT addresses of
// external configuration, the interface roles, the access lists and the agent's routes from VPP
// (--cleanup-on-exit). It runs the link again after the end of the actors, and gives up when ctx
// ends: a VPP that does not answer keeps its configuration.
func (a *Agent) cleanUp(ctx context.Context, vpp *link.Link) error {
	ctx, cancel := context.WithCancelCause(ctx)
	up, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(done)
		cancel(vpp.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				hint(up)
			}
		}))
	}()
	defer func() {
		cancel(nil)
		<-done
	}()
	select {
	case <-up:
	case <-ctx.Done():
		return fmt.Errorf("no connection to VPP: %w", context.Cause(ctx))
	}
	operations := 0
	var errs []error
	var pool []netip.Addr
	if a.outside != nil {
		pool = natAddresses(ctx, a.outside)
	}
	removeNAT := func(ctx context.Context, vpp link.Caller) (int, error) { return removeRows(ctx, vpp, pool) }
	// access lists after the rows that they protect
	removals := []func(context.Context, link.Caller) (int, error){removeNAT, removeLists, removeRoutes}
	if a.cfg.CNAT("", nil) != nil {
		removals = append(removals, removeTranslations)
	}
	for _, remove := range removals {
		n, err := remove(ctx, vpp)
		operations, errs = operations+n, append(errs, err)
	}
	a.log.Info("VPP cleaned up", "operations", operations)
	return errors.Join(errs...)
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

// removeRoutes removes the agent's routes from VPP. Route sources cannot be removed; the next start
// uses them again.
func removeRoutes(ctx context.Context, vpp link.Caller) (operations int, err error) {
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
