package agent

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// cleanUp removes all that the renderers have put into VPP (--cleanup-on-exit). It runs the link
// again after the end of the actors, and gives up when ctx ends: a VPP that does not answer keeps
// its configuration.
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
	deps := &actors.Deps{}
	if config := a.cfg.CNAT("", nil); config != nil {
		config.IPv4 = false // also what an earlier run has left in NAT44
		deps.CNAT = config
	}
	var pool []netip.Addr
	if a.outside != nil {
		pool = natAddresses(ctx, a.outside)
	}
	operations, err := actors.CleanUp(ctx, deps, vpp, pool)
	a.log.Info("VPP cleaned up", "operations", operations)
	return err
}
