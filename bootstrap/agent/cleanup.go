package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// CleanUp removes what an agent has put into VPP and into the routes of the host, as
// --cleanup-on-exit does, and returns the operations in words. It needs no agent, and must not run
// beside one, which would put everything back. A dry run only reads VPP; a route that is below
// another one of the agent is not among its operations. The agent's NAT addresses are those of the
// external configuration in the data directory and in the file.
func CleanUp(ctx context.Context, cfg *config.Agent, dryRun bool, log *slog.Logger) ([]string, error) {
	every := *cfg
	every.Renderer = config.RendererDual // an earlier agent may have had another one
	a := &Agent{cfg: &every, log: log}
	a.outside = a.externalSources()
	vpp := link.New(link.Config{Socket: cfg.VPP.APISocket, Window: cfg.VPP.RequestWindow, ReplyTimeout: cfg.VPP.ReplyTimeout.Duration()}, log)
	c := &cleaning{dryRun: dryRun}
	err := errors.Join(a.clean(ctx, vpp, c), vpp.Close())
	keeper, ok, invalid := cfg.HostRoute.Keeper()
	if err = errors.Join(err, invalid); !ok || dryRun {
		return c.said, err
	}
	return c.said, errors.Join(err, hostroute.New(keeper, hostroute.Host(keeper.Gateway), log).Remove(ctx))
}

// cleaning is one clean-up.
type cleaning struct {
	dryRun bool
	pool   []netip.Addr // the NAT addresses that the agent owns
	said   []string     // the operations
}

// carryOut applies operations, unless the clean-up is a dry run.
func carryOut[O fmt.Stringer](c *cleaning, ops []O, apply func() error) error {
	for _, op := range ops {
		c.said = append(c.said, op.String())
	}
	if c.dryRun || len(ops) == 0 {
		return nil
	}
	return apply()
}

// cleanUp removes the agent's rows and translations, the hairpin address, the NAT addresses of
// external configuration, the interface roles, the access lists and the agent's routes from VPP
// (--cleanup-on-exit).
func (a *Agent) cleanUp(ctx context.Context, vpp *link.Link) error {
	c := &cleaning{}
	err := a.clean(ctx, vpp, c)
	if len(c.said) > 0 || err == nil {
		a.log.Info("VPP cleaned up", "operations", len(c.said))
	}
	return err
}

// clean cleans VPP up. It runs the link again after the end of the actors, and gives up when ctx
// ends: a VPP that does not answer keeps its configuration.
func (a *Agent) clean(ctx context.Context, vpp *link.Link, c *cleaning) error {
	ctx, cancel := context.WithCancelCause(ctx)
	up, done := make(chan struct{}, 1), make(chan struct{})
	var reason atomic.Pointer[string]
	go func() {
		defer close(done)
		cancel(vpp.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				hint(up)
			}
			if text := s.GetReason(); text != "" {
				reason.Store(&text)
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
		if text := reason.Load(); text != nil {
			return fmt.Errorf("no connection to VPP: %s: %w", *text, context.Cause(ctx))
		}
		return fmt.Errorf("no connection to VPP: %w", context.Cause(ctx))
	}
	if a.outside != nil {
		c.pool = natAddresses(ctx, a.outside)
	}
	// access lists after the rows that they protect
	removals := []func(context.Context, link.Caller) error{c.removeRows, c.removeLists, c.removeRoutes}
	if a.cfg.CNAT("", nil) != nil {
		removals = append(removals, c.removeTranslations)
	}
	var errs []error
	for _, remove := range removals {
		errs = append(errs, remove(ctx, vpp))
	}
	return errors.Join(errs...)
}

// removeRows removes the agent's configuration from NAT44.
func (c *cleaning) removeRows(ctx context.Context, vpp link.Caller) error {
	state, err := nat44.Read(ctx, vpp)
	if err != nil || !state.Enabled {
		return err
	}
	ops := nat44.Diff(state, nothing(state, c.pool), true)
	return carryOut(c, ops, func() (err error) {
		for _, result := range nat44.Apply(ctx, vpp, ops) {
			err = errors.Join(err, result.Err)
		}
		return err
	})
}

// removeLists detaches the agent's access lists from the interfaces, which keep those of others,
// and deletes them.
func (c *cleaning) removeLists(ctx context.Context, vpp link.Caller) error {
	state, err := acl.Read(ctx, vpp)
	if errors.Is(err, link.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	ops := acl.Diff(state, &acl.Want{}, true)
	return carryOut(c, ops, func() (err error) {
		for _, result := range acl.Apply(ctx, vpp, ops) {
			err = errors.Join(err, result.Err)
		}
		return err
	})
}

// removeRoutes removes the agent's routes from VPP. Route sources cannot be removed; the next start
// uses them again.
func (c *cleaning) removeRoutes(ctx context.Context, vpp link.Caller) error {
	for { // VPP shows a route only after the one above it has been removed
		state, err := routes.Read(ctx, vpp, nil, nil)
		if errors.Is(err, routes.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		ops := routes.Diff(state, nil, true)
		err = carryOut(c, ops, func() (err error) {
			for _, result := range routes.Apply(ctx, vpp, ops) {
				err = errors.Join(err, result.Err)
			}
			return err
		})
		if len(ops) == 0 || err != nil || c.dryRun {
			return err
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
