package actors

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

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

// sweep puts everything on the list that VPP holds of us and that nobody wants.
func (r *renderer) sweep(c *runtime.Context) {
	r.swept, r.globals = true, true
	var leftovers []nat44.Key
	for k := range r.have.Rows {
		if r.wanted(k) == nil && !r.spares(k) {
			leftovers = append(leftovers, k)
		}
	}
	slices.SortFunc(leftovers, nat44.Key.Compare)
	for _, k := range leftovers {
		r.list(k)
	}
	for _, k := range r.unfinished() { // among them those that waited for their owner to speak
		if r.wanted(k) != nil {
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
	return held != nil && !want.SameService(held)
}
