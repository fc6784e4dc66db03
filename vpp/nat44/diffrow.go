package nat44

import "slices"

// DiffRow returns what turns one row into the other: nil means that VPP does not hold the row, or
// should not. Both have the same key.
//
// Where only backends differ they are changed one by one, see arrange. VPP cannot change anything
// else in place (flags, affinity, tag), so the row is deleted and added in two operations that
// follow each other directly, which ends its connections. Rows without pads keep their weights
// therefore, see Row.Beside. In between, the row keeps a backend, keeps all backends that it has
// before and after, and keeps a load that VPP survives. A wanted row without backends counts as
// nil, unless backends drain (Target).
func DiffRow(have, want *Row) []Op {
	target := Target(have, want)
	switch {
	case have == nil && target == nil:
		return nil
	case have == nil:
		return []Op{{Verb: AddRow, Key: want.Key, Row: want}}
	case target == nil:
		return []Op{{Verb: DelRow, Key: have.Key, Row: have}}
	case have.Equal(*target):
		return nil
	}
	if ops, ok := changeLocals(have, target); ok {
		return ops
	}
	if len(want.Locals) == 0 {
		return []Op{{Verb: DelRow, Key: have.Key, Row: have}}
	}
	return []Op{{Verb: DelRow, Key: have.Key, Row: have, Why: have.differs(target)}, {Verb: AddRow, Key: want.Key, Row: want}}
}

// differs says why one row cannot become the other in place.
func (r *Row) differs(want *Row) string {
	switch {
	case !want.SameService(r):
		return "another service has the address"
	case r.odd || r.Pads != want.Pads:
		return "its entries are not the agent's"
	case r.Kind != want.Kind || r.Flags != want.Flags:
		return "how it translates has changed"
	case r.Affinity != want.Affinity:
		return "affinity changed"
	case r.Affinity > 0:
		return "an endpoint has left, and clients stay with theirs"
	default:
		return "its endpoints cannot change one by one"
	}
}

// inSlots reports whether both rows have slots, and one can become the other in place. VPP keeps
// the affinity entries of a deleted backend, and goes on to send its clients to its place. So with
// affinity a new backend may only take a place whose entry led back to the frontend.
func inSlots(have, want *Row) bool {
	if want.Affinity == 0 {
		return true
	}
	back, stay := 0, 0
	for _, s := range have.layout() {
		is := func(l Local) bool { return l.Endpoint() == s.backend }
		switch {
		case s.empty(), slices.ContainsFunc(want.Draining, is):
		case slices.ContainsFunc(want.Locals, is):
			stay++
		case s.backend == have.back():
			back++
		default:
			return false
		}
	}
	return back <= len(want.Locals)-stay
}

// changeLocals returns the additions and deletions of locals that turn one row into the other, and
// false where that is not possible.
func changeLocals(have, want *Row) ([]Op, bool) {
	if !have.sameShape(want) || want.Kind != Balanced {
		return nil, false
	}
	if have.Pads {
		if !inSlots(have, want) {
			return nil, false
		}
		return arrange(have, want)
	}
	added, deleted, ok := compareLocals(have.Locals, want.Locals)
	switch {
	case !ok:
		return nil, false
	case want.Affinity > 0 && len(deleted) > 0:
		// VPP keeps the affinity entries of a deleted local and goes on to send its clients
		// there.
		return nil, false
	case len(have.Locals) < MinEntries || len(want.Locals) < MinEntries:
		// A lone backend without pads has two entries in VPP, and neither can be added or
		// deleted by itself.
		return nil, false
	}
	return interleave(have, added, deleted)
}

// compareLocals returns the locals that are only in want and only in have; false where the weight
// of a common one differs, because VPP cannot change a weight in place. Both lists are ordered.
func compareLocals(have, want []Local) (added, deleted []Local, ok bool) {
	for len(have) > 0 && len(want) > 0 {
		switch order := compareEntry(have[0], want[0]); {
		case order < 0:
			deleted, have = append(deleted, have[0]), have[1:]
		case order > 0:
			added, want = append(added, want[0]), want[1:]
		case have[0].Weight != want[0].Weight:
			return nil, nil, false
		default:
			have, want = have[1:], want[1:]
		}
	}
	return append(added, want...), append(deleted, have...), true
}

// interleave orders the changes of a row: additions first, deletions as soon as there is no room
// for the next addition. It returns false where VPP would not survive a row in between.
func interleave(have *Row, added, deleted []Local) ([]Op, bool) {
	ops := make([]Op, 0, len(added)+len(deleted))
	load := have.load()
	for len(added) > 0 || len(deleted) > 0 {
		if len(added) > 0 {
			after := Load{Entries: load.Entries + 1, Weight: load.Weight + int(added[0].Weight)}
			if after.safe() {
				ops = append(ops, Op{Verb: AddLocal, Key: have.Key, Local: added[0], After: after})
				added, load = added[1:], after
				continue
			}
		}
		if len(deleted) == 0 {
			return nil, false
		}
		after := Load{Entries: load.Entries - 1, Weight: load.Weight - int(deleted[0].Weight)}
		if !after.safe() {
			return nil, false
		}
		ops = append(ops, Op{Verb: DelLocal, Key: have.Key, Local: deleted[0], After: after})
		deleted, load = deleted[1:], after
	}
	return ops, true
}
