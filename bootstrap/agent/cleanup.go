package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// cleanUp takes our rows, the hairpin address and the interface roles out of VPP (--cleanup-on-exit). It runs when the actors are gone, over
// a connection of its own, and gives up with ctx: a node that cannot be reached is cleaned by nobody.
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
	state, err := nat44.Read(ctx, vpp)
	if err != nil || !state.Enabled {
		return err
	}
	ops := nat44.Diff(state, nothing(state), true)
	var errs []error
	for _, result := range nat44.Apply(ctx, vpp, ops) {
		if result.Err != nil {
			errs = append(errs, result.Err)
		}
	}
	a.log.Info("cleaned up", "operations", len(ops), "failed", len(errs))
	return errors.Join(errs...)
}

// nothing is what VPP should hold of us when we are gone. Rows of others stay; so do forwarding and timeouts, which hurt nobody.
func nothing(state *nat44.State) *nat44.Want {
	want := &nat44.Want{Globals: nat44.Globals{Timeouts: state.Timeouts}, Interfaces: map[uint32]bool{}}
	if len(state.Foreign) > 0 {
		return want // somebody else uses the plugin, and with it the addresses and roles
	}
	want.Retired = state.TwiceNAT
	for index := range state.Roles {
		want.Interfaces[index] = false
	}
	return want
}
