package nat44

import (
	"net/netip"
	"slices"
)

// Shares returns the backends that new connections reach, with their shares, and the backends that
// drain, from the entries of a row in VPP's order. vip is the frontend of the row; an entry that
// leads back to it reaches no backend. Tests and drills use it, because they see VPP without a
// State.
func Shares(vip netip.AddrPort, entries []Local) (live, draining []Local) {
	slots, _, _, ok := parseSlots(entries)
	if !ok {
		return slices.DeleteFunc(slices.Clone(entries), func(l Local) bool { return l.Weight == 0 }), nil
	}
	for _, s := range slots {
		switch {
		case s.empty() || s.backend == vip:
		case s.share == 0:
			draining = append(draining, s.local(0))
		default:
			live = append(live, s.local(s.share))
		}
	}
	return live, draining
}

// Idle reports whether no new connection reaches a backend of the row: VPP holds it for connections
// that drain.
func (r Row) Idle() bool {
	return r.Kind == Balanced && !slices.ContainsFunc(r.Locals, func(l Local) bool { return !r.LeadsBack(l) })
}

// AlsoDraining returns the row with these backends among its draining ones.
func (r Row) AlsoDraining(others []Local) Row {
	all := slices.Concat(r.Draining, others)
	slices.SortFunc(all, compareEndpoint)
	r.Draining = slices.CompactFunc(all, func(a, b Local) bool { return compareEndpoint(a, b) == 0 })
	return r
}
