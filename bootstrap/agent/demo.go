//go:build !agent

package agent

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Statuses returns the status of all services, ordered by key, and their summaries. The values are
// shared and must not be modified.
func (a *Agent) Statuses(ctx context.Context) ([]*messages.ServiceStatus, []api.Service, error) {
	page, err := askUntil[*status.ServicesPage](ctx, a.system, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil, nil, err
	}
	return page.Services, backend{agent: a}.summaries(page), nil
}

// Renderers are the names of the renderers, in the order of the tree.
func (a *Agent) Renderers() []string { return a.renderers() }

// Simulator is the simulated VPP, nil with a real one.
func (a *Agent) Simulator() *simulator.VPP {
	if a.cni == nil {
		return nil
	}
	return a.cni.server
}

// Usage counts the requests to VPP. It needs chaos. RowReads leaves out drift checks and the reads
// of Diff.
func (a *Agent) Usage() link.Usage { return a.stage.Usage() }

// Kill fails an actor, as if it had panicked.
func (a *Agent) Kill(path string) error { return a.system.Kill(path) }

// Restarts counts the restarts of an actor.
func (a *Agent) Restarts(path string) uint64 {
	state, _ := a.system.Actor(path)
	return state.Restarts
}

// Working reports whether an actor has started and handles messages.
func (a *Agent) Working(path string) bool {
	state, ok := a.system.Actor(path)
	return ok && (state.State == runtime.StateIdle || state.State == runtime.StateRunning)
}

// Pod returns the IPv4 address and the interface of the first pod of this node, by name, on the
// simulated VPP; an invalid address = there is none.
func (a *Agent) Pod() (netip.Addr, string) { return a.cni.anyPod() }

// anyPod is the first connected pod by name.
func (s *simulatedCNI) anyPod() (netip.Addr, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := slices.SortedFunc(slices.Values(s.node.GetPods()), func(a, b *messages.Pod) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, pod := range pods {
		for _, text := range pod.GetAddresses() {
			if a, err := netip.ParseAddr(text); err == nil && a.Is4() && s.pods[text] {
				return a, podInterface(pod)
			}
		}
	}
	return netip.Addr{}, ""
}
