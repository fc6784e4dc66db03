package nat44

import (
	"net/netip"
	"slices"
)

// Target returns the row that VPP should hold instead of the one that it holds; nil = none. Where
// no backend is left for new connections and VPP holds some that drain, the row stays for their
// connections, and leads all other packets back to its own address: VPP's routes refuse them there,
// as if the row did not exist.
func Target(held, want *Row) *Row {
	switch {
	case want == nil:
		return nil
	case len(want.Locals) > 0:
		kept := want.Beside(held)
		return &kept
	case held == nil || held.odd || !held.Pads || !want.SameService(held):
		return nil
	}
	closed := *held
	closed.slots, closed.torn = nil, false
	closed.Locals, closed.Draining = []Local{newLocal(held.back(), unpairedWeight)}, want.Draining
	if closed = closed.besideSlots(held); len(closed.Draining) == 0 {
		return nil
	}
	return &closed
}

// Beside returns the row as it should be beside the one that VPP holds under its key, so that as
// few connections as possible end: with shares that fit the held weights, and draining only
// backends that VPP holds. Nothing is kept of a row of another service.
func (r Row) Beside(held *Row) Row {
	fresh := r
	fresh.Draining = nil
	if held == nil || held.odd || held.Kind != r.Kind || r.Kind != Balanced || !r.SameService(held) {
		return fresh
	}
	if r.Pads && held.Pads {
		return r.besideSlots(held)
	}
	if !fresh.uniform() || !held.uniform() || !keepsWeight(held.Locals[0].Weight, len(fresh.Locals)) {
		return fresh
	}
	return fresh.weighing(held.Locals[0].Weight)
}

// besideSlots is Beside for a row that VPP holds in slots.
func (r Row) besideSlots(held *Row) Row {
	slots := held.layout()
	at := make(map[netip.AddrPort]*slot, len(slots))
	for i := range slots {
		if s := &slots[i]; !s.empty() && !s.noBackend {
			at[s.backend] = s
		}
	}
	r.Draining = slices.DeleteFunc(slices.Clone(r.Draining), func(l Local) bool {
		_, used := slices.BinarySearchFunc(r.Locals, l, compareEndpoint)
		return used || at[l.Endpoint()] == nil
	})
	for i := range r.Draining {
		r.Draining[i].Table = at[r.Draining[i].Endpoint()].table
	}
	r.Draining = r.Draining[:min(len(r.Draining), MaxDraining)]
	if room := maxSlots - len(r.Draining); len(r.Locals) > room {
		r.Locals = roomFor(r.Locals, room, func(l Local) bool { return at[l.Endpoint()] != nil })
	}
	if len(r.Locals) == 0 || !r.uniform() {
		return r
	}
	return r.weighing(r.share(held, at))
}

// MaxDraining is how many backends of a row may drain: half of the slots, so that the row always
// has room for others.
const MaxDraining = maxSlots / 2

// Within returns the row with at most n backends; backends that VPP holds in another row come
// first.
func (r Row) Within(n int, held *Row) Row {
	if len(r.Locals) > n {
		r.Locals = roomFor(r.Locals, n, func(l Local) bool {
			is := func(o Local) bool { return o.Endpoint() == l.Endpoint() }
			return slices.ContainsFunc(held.Locals, is) || slices.ContainsFunc(held.Draining, is)
		})
	}
	return r
}

// roomFor returns n of the backends; the ones that VPP holds come first. The others wait until a
// draining backend has gone.
func roomFor(all []Local, n int, held func(Local) bool) []Local {
	kept := slices.Clone(all)
	slices.SortStableFunc(kept, func(a, b Local) int {
		switch inA, inB := held(a), held(b); {
		case inA == inB:
			return 0
		case inA:
			return -1
		}
		return 1
	})
	kept = kept[:n]
	slices.SortFunc(kept, compareEndpoint)
	return kept
}

// share returns the share of each backend: the present one if it is fair and fits, so that nothing
// is sent, otherwise the best one that is fair and fits. A share cannot exceed the weight that a
// backend came with.
func (r *Row) share(held *Row, at map[netip.AddrPort]*slot) uint8 {
	candidates := []uint8{r.Locals[0].Weight, unpairedWeight, pairedWeight, 1}
	if held.uniform() && held.Locals[0].Weight >= pairedWeight {
		candidates = append([]uint8{held.Locals[0].Weight}, candidates...)
	}
	for _, share := range candidates {
		// The sum rises by what a pad takes back: above one backend while VPP adds it up,
		// and above another one while its pad is replaced.
		first, second, fits := 0, 0, true
		rises := func(n int) {
			if n > first {
				n, first = first, n
			}
			second = max(second, n)
		}
		for _, l := range r.Locals {
			if s := at[l.Endpoint()]; s != nil {
				fits = fits && s.weight >= share
				rises(int(s.weight) - int(share))
			}
		}
		for _, l := range r.Draining {
			rises(int(at[l.Endpoint()].weight))
		}
		if fits && int(share)*len(r.Locals)+first+second <= MaxWeight {
			return share
		}
	}
	return 1
}

// weighing returns the row with this weight for each of its backends.
func (r Row) weighing(weight uint8) Row {
	if weight != r.Locals[0].Weight {
		r.Locals = slices.Clone(r.Locals)
		for i := range r.Locals {
			r.Locals[i].Weight = weight
		}
	}
	return r
}

// SameService reports whether both rows belong to the same service.
func (r *Row) SameService(held *Row) bool {
	if held.Tag == r.Tag {
		return true
	}
	theirs, known := ParseTag(held.Tag)
	ours, _ := ParseTag(r.Tag)
	return known && theirs.Hash == ours.Hash
}

// uniform reports whether the row has backends and all of them have the same weight. Only such a
// row has a weight class.
func (r *Row) uniform() bool {
	for _, l := range r.Locals {
		if l.Weight != r.Locals[0].Weight {
			return false
		}
	}
	return len(r.Locals) > 0
}
