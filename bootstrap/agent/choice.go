package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// The renderer of IPv4 with --renderer auto. The actors start with NAT44. No actor learns of a VPP
// before the choice is made, so nothing is written. Where CNAT is chosen, the tree is planted again
// with the other renderers. The choice lasts as long as the process: a change would end
// connections.

// chooseAgain is the time between two attempts to read how VPP is laid out.
const chooseAgain = time.Second

// rendering is the configuration with the renderers that run.
func (a *Agent) rendering() *config.Agent {
	choice := a.choice.Load()
	return a.cfg.Chosen(choice != nil && choice.CNAT)
}

// renderers are the names of the renderers that run, in the order of the tree.
func (a *Agent) renderers() []string {
	return (&actors.Deps{CNAT: a.rendering().CNAT(a.cfg.NodeName, nil)}).Renderers()
}

// chosen makes the choice, if it is still to be made, and reports whether the actors may use the
// VPP. They may not if the connection ends meanwhile, or the tree has other renderers.
func (a *Agent) chosen(ctx context.Context, vpp link.Caller) bool {
	if a.cfg.Renderer != config.RendererAuto || a.choice.Load() != nil {
		return true
	}
	choice, err := interfaces.Choose(ctx, vpp)
	for err != nil {
		if ctx.Err() != nil || errors.Is(err, link.ErrDown) || errors.Is(err, link.ErrUnknown) {
			return false // the next connection is asked
		}
		a.log.Warn("VPP does not say how it is laid out", "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(chooseAgain):
		}
		choice, err = interfaces.Choose(ctx, vpp)
	}
	a.choice.Store(&choice)
	text := a.choiceText()
	a.log.Info("renderer of IPv4 chosen", "choice", text)
	a.events.Record(events.RendererChosen(a.cfg.NodeName, text))
	if choice.CNAT {
		close(a.replant)
	}
	return !choice.CNAT
}

// choiceText says which renderer serves IPv4, why, and which settings have no effect therefore.
func (a *Agent) choiceText() string {
	choice := a.choice.Load()
	switch {
	case a.cfg.Renderer != config.RendererAuto:
		return "IPv4 by " + strings.Join(a.cfg.RenderersOf("IPv4"), "") + ", as configured"
	case choice == nil:
		return "the renderer of IPv4 is chosen with the first connection to VPP"
	case !choice.CNAT:
		return "IPv4 by nat44: " + choice.Why
	}
	text, without := "IPv4 by cnat: "+choice.Why, []string(nil)
	if a.cfg.SNAT.Enabled {
		without = append(without, "snat.enabled")
	}
	if a.cfg.External.File != "" {
		without = append(without, "external.file")
	}
	if len(without) > 0 {
		text += fmt.Sprintf("; warning: %s has no effect, it needs nat44", strings.Join(without, ", "))
	}
	return text
}

// choiceParts returns the line of /readyz?verbose about the choice.
func (a *Agent) choiceParts() []api.Part {
	if a.cfg.Renderer != config.RendererAuto {
		return nil
	}
	return []api.Part{{Name: "renderer", OK: true, Reason: a.choiceText()}}
}

// plant spawns the actors with the renderers that are chosen.
func (a *Agent) plant(deps actors.Deps) error {
	cfg := a.rendering()
	deps.CNAT = cfg.CNAT(cfg.NodeName, deps.NAT44.Ground.Reserved)
	if a.outside != nil && cfg.Renderer != config.RendererCNAT {
		deps.External = a.outside
	}
	a.metrics.Serves(cfg.Families())
	_, err := a.system.SpawnRoot(address.RootName, actors.Tree(&deps))
	return err
}

// plantAgain replaces the actors when the choice asks for other renderers.
func (a *Agent) plantAgain(deps actors.Deps) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-a.replant:
		}
		err := a.system.StopRoots(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err = errors.Join(err, a.plant(deps)); err != nil {
			a.fail(fmt.Errorf("change the renderer of IPv4: %w", err))
		}
		return nil
	}
}
