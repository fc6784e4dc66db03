package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// CleanUp removes the configuration of an agent from VPP and its routes from the host, as
// --cleanup-on-exit does, and returns the operations in words, and the objects that stay because
// the data directory has no record that the agent has made them. Do not run it beside an agent,
// which would restore everything. A dry run only reads VPP; its operations leave out a route that
// is below another route of the agent.
func CleanUp(ctx context.Context, cfg *config.Agent, dryRun bool, log *slog.Logger) (said, kept []string, err error) {
	every := *cfg
	every.Renderer = config.RendererDual // an earlier agent may have had another renderer
	a := &Agent{cfg: &every, log: log}
	l := link.New(link.Config{Socket: cfg.VPP.APISocket, Window: cfg.VPP.RequestWindow, ReplyTimeout: cfg.VPP.ReplyTimeout.Duration()}, log)
	vpp := a.recorded(l)
	if dryRun { // the file may belong to a running agent
		vpp.Record.Freeze()
	} else {
		locks, err := lockForCleanUp(cfg)
		if err != nil {
			return nil, nil, errors.Join(err, l.Close())
		}
		defer func() {
			for _, held := range locks {
				err = errors.Join(err, held.release())
			}
		}()
	}
	r := &render.Removal{DryRun: dryRun}
	err = errors.Join(a.clean(ctx, vpp, r), l.Close())
	keepers, invalid := cfg.HostRoute.Keepers()
	if err = errors.Join(err, invalid); dryRun {
		return r.Said, r.Kept, err
	}
	for _, keeper := range keepers {
		err = errors.Join(err, hostroute.New(keeper, hostroute.Host(keeper.Gateway), log).Remove(ctx))
	}
	return r.Said, r.Kept, err
}

// lockForCleanUp takes the locks of an agent: a running agent has them, wherever it listens, and
// would restore everything.
func lockForCleanUp(cfg *config.Agent) (locks []*lock, err error) {
	paths := []string{lockOf(cfg.VPP.APISocket)}
	if cfg.DataDir != "" {
		if _, err := os.Stat(cfg.DataDir); err == nil { // else there was no agent
			paths = append(paths, filepath.Join(cfg.DataDir, dataLock))
		}
	}
	for _, path := range paths {
		l, err := takeLock(path, "troupe cleanup")
		if err != nil {
			for _, held := range locks {
				_ = held.release()
			}
			if errors.Is(err, errLocked) {
				return nil, fmt.Errorf("an agent is running and would restore everything, stop it first: %w", err)
			}
			return nil, err
		}
		locks = append(locks, l)
	}
	return locks, nil
}

// recorded puts the record of the agent's own objects around the connection to VPP. Without a data
// directory the record lasts as long as the process.
func (a *Agent) recorded(l *link.Link) *owned.Watched {
	var store owned.Store = owned.Memory{}
	if a.cfg.DataDir != "" {
		store = ownedFile(filepath.Join(a.cfg.DataDir, "vpp.json"))
	}
	return &owned.Watched{Runner: l, Record: owned.Open(store, a.log.With("part", "link"))}
}

// cleanUp removes the agent's rows and translations, access lists and routes, and the addresses and
// interface roles that the agent has made, from VPP (--cleanup-on-exit).
func (a *Agent) cleanUp(ctx context.Context, vpp *owned.Watched) error {
	r := &render.Removal{}
	err := a.clean(ctx, vpp, r)
	if len(r.Said) > 0 || err == nil {
		a.log.Info("VPP cleaned up", "operations", len(r.Said), "kept", r.Kept)
	}
	return err
}

// clean removes the configuration of the agent from VPP. It runs the link again, because the link
// ended with the actors. It gives up when ctx ends: a VPP that does not answer keeps its
// configuration.
func (a *Agent) clean(ctx context.Context, vpp *owned.Watched, r *render.Removal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	up, done := make(chan struct{}, 1), make(chan struct{})
	var reason atomic.Pointer[string]
	go func() {
		defer close(done)
		cancel(vpp.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				hint(up)
			}
			if text := s.GetReason(); text != "" && ctx.Err() == nil { // else the reason is the end
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
	deps := &actors.Deps{}
	if config := a.cfg.CNAT("", nil); config != nil {
		config.IPv4 = false // rows of an earlier run in NAT44 are removed, too
		deps.CNAT = config
	}
	// an index in the record may have become another interface's
	if _, err := cnat.Interfaces(ctx, vpp); err != nil {
		return fmt.Errorf("read the interfaces of VPP: %w", err)
	}
	r.Owned = vpp.Record
	return actors.CleanUp(ctx, deps, vpp, r)
}

// Pauses before the next attempt to remove the start-up taint: until the agent is ready, and after
// a failure.
const (
	taintPoll  = time.Second
	taintRetry = 10 * time.Second
)

// removeTaint removes the start-up taint from this node when the agent is ready for the first time.
// It does not add it again, because a node that was ready keeps its pods.
func (a *Agent) removeTaint(client *apiserver.Client) {
	key := a.cfg.Kubernetes.StartupTaint
	if key == "" || client == nil {
		return
	}
	a.own("removal of the start-up taint", func(ctx context.Context) error {
		said := false
		for {
			pause := taintPoll
			if a.readiness.Load().Ready {
				removed, err := client.RemoveTaint(ctx, a.cfg.NodeName, key)
				if err == nil {
					a.log.Info("pods may run on this node", "taint", key, "removed", removed)
					return nil
				}
				if !said && ctx.Err() == nil {
					a.log.Warn("cannot remove the start-up taint, retrying", "err", err)
					said = true
				}
				pause = taintRetry
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
		}
	})
}
