package agent

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Statuses are all services as introspection knows them, ordered by key; shared, not to be changed.
func (a *Agent) Statuses(ctx context.Context) ([]*messages.ServiceStatus, error) {
	page, err := ask[*actors.StatusPage](ctx, a, actors.PathIntrospect, &actors.StatusQuery{})
	if err != nil {
		return nil, err
	}
	return page.Services, nil
}

// Simulator is the simulated VPP, nil with a real one.
func (a *Agent) Simulator() *simulator.VPP { return a.simulated }

// Usage is what was asked of VPP, by an agent with chaos; what nobody has given a reason for, checks and read-backs, is not among RowReads.
func (a *Agent) Usage() link.Usage { return a.stage.Usage() }

// Kill makes an actor fail, as if it had panicked.
func (a *Agent) Kill(path string) error { return a.system.Kill(path) }

// Restarts counts how often an actor was restarted.
func (a *Agent) Restarts(path string) uint64 {
	state, _ := a.system.Actor(path)
	return state.Restarts
}

// Working reports whether an actor has started and takes messages.
func (a *Agent) Working(path string) bool {
	state, ok := a.system.Actor(path)
	return ok && (state.State == runtime.StateIdle || state.State == runtime.StateRunning)
}

// PodAddress and PodInterface are a pod of this node on the simulated VPP, the first one by name.
func (a *Agent) PodAddress() netip.Addr {
	address, _ := a.cni.anyPod()
	return address
}

// PodInterface is the interface of PodAddress.
func (a *Agent) PodInterface() string {
	_, name := a.cni.anyPod()
	return name
}

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
