package actors

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// up tells the registry where we are; it answers when it knows more. This goes on for ever, so that neither a lost Begin nor a restarted
// registry leaves us with services that are gone.
func (r *renderer) up(c *runtime.Context) {
	c.Send(c.PID(PathRegistry), &messages.RenderUp{Renderer: r.name, Epoch: r.epoch, Begun: r.begun.GetGeneration()})
}

// begin opens the barrier of the epoch, or renews the list of the services and the node.
func (r *renderer) begin(c *runtime.Context, m *messages.Begin) {
	if m.GetEpoch() != r.epoch || m.GetGeneration() < r.begun.GetGeneration() {
		return
	}
	first := r.begun == nil
	r.begun = m
	r.nodeChanged(c, m.GetNode())
	if first {
		for _, key := range m.GetKeys() {
			if r.accounts[key] == nil {
				r.awaited[key] = true
			}
		}
	}
	for _, key := range sortedKeys(r.accounts) {
		a := r.accounts[key]
		if a != nil && a.view != nil && a.generation < m.GetGeneration() && !listed(m, key) { // it went while nobody could tell us
			r.adopt(c, key, m.GetGeneration(), 0, nil)
		}
	}
	for key := range r.awaited {
		if !listed(m, key) {
			delete(r.awaited, key)
		}
	}
	if first {
		record(c, &messages.Event{
			Kind: "resync", Object: r.name,
			Text: fmt.Sprintf("epoch begun with %d services, %d still silent", len(m.GetKeys()), len(r.awaited)),
		})
	}
}

// listed reports whether a service is in the list.
func listed(m *messages.Begin, key string) bool {
	_, found := slices.BinarySearch(m.GetKeys(), key)
	return found
}

// departed reports whether what a service says is older than a list that does not have it any more.
func (r *renderer) departed(m *messages.Render) bool {
	return r.begun != nil && m.GetView() != nil && m.GetGeneration() < r.begun.GetGeneration() && !listed(r.begun, m.GetKey())
}

// nodeChanged derives the hairpin address from the node unless it was configured.
func (r *renderer) nodeChanged(c *runtime.Context, m *messages.NodeContext) {
	config := r.deps.NAT44
	if !config.TwiceNAT.IsValid() {
		config.TwiceNAT = hairpinAddress(m.GetNode())
	}
	if config.Equal(r.planned) {
		return
	}
	r.replaced(r.planned.TwiceNAT, config.TwiceNAT)
	r.replan(config)
	r.globals = true
	c.Logger().Info("hairpin address", "vip", config.TwiceNAT.String())
}

// replaced notes that a hairpin address of ours is not in use any more and has to go.
func (r *renderer) replaced(old, now netip.Addr) {
	r.hairpins = slices.DeleteFunc(r.hairpins, func(a netip.Addr) bool { return a == now })
	if old.IsValid() && old != now && !slices.Contains(r.hairpins, old) {
		r.hairpins = append(r.hairpins, old)
	}
}

// passed reports whether every service of the epoch has spoken.
func (r *renderer) passed() bool { return r.begun != nil && len(r.awaited) == 0 }

// sweep puts everything on the list that VPP holds of us and that nobody wants.
func (r *renderer) sweep(c *runtime.Context) {
	r.swept, r.globals = true, true
	var leftovers []nat44.Key
	for k := range r.have.Rows {
		if r.wanted(k) == nil {
			leftovers = append(leftovers, k)
		}
	}
	slices.SortFunc(leftovers, nat44.Key.Compare)
	for _, k := range leftovers {
		r.list(k)
	}
	for _, k := range slices.SortedFunc(maps.Keys(r.dirty), nat44.Key.Compare) { // among them those that waited for their owner to speak
		if r.failed[k] == nil && r.wanted(k) != nil {
			r.list(k)
		}
	}
	if first := !r.opened; first || len(leftovers) > 0 {
		r.opened = true
		record(c, &messages.Event{
			Kind: "resync", Object: r.name,
			Text: fmt.Sprintf("every service has spoken; %d rows of earlier runs are not wanted any more", len(leftovers)),
		})
	}
}

// anothers reports whether the row that VPP holds under a key is of another service than the one that wants it now. Before the barrier the
// other one may still speak and own the address: to change the row then would cut its connections for nothing.
func (r *renderer) anothers(k nat44.Key, want *nat44.Row) bool {
	held := r.held(k)
	if held == nil {
		return false
	}
	theirs, _ := nat44.ParseTag(held.Tag)
	ours, _ := nat44.ParseTag(want.Tag)
	return theirs.Hash != ours.Hash
}
