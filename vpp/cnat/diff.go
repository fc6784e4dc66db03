package cnat

import (
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Diff returns the least operations that turn what VPP holds into what is wanted: settings and
// interfaces, then rows ordered by key, then unwanted rows and interfaces. Unwanted rows are
// deleted only with sweep, that is when every service has rendered. Rows of other owners are
// neither deleted nor replaced. Equal arguments give equal results; a state that is as wanted gives
// none.
func Diff(have *State, want *Want, sweep bool) []Op {
	settings, detach := DiffSettings(have, want)
	var replaced, put, gone []Op
	keys := slices.AppendSeq(slices.Collect(maps.Keys(want.Rows)), maps.Keys(have.Rows))
	slices.SortFunc(keys, rule.Key.Compare)
	for _, key := range slices.Compact(keys) {
		row, held := want.Rows[key], have.held(key)
		if held != nil && !held.Ours {
			continue
		}
		for _, op := range DiffRow(held, &row) {
			switch op.Newer = have.Newer; {
			case op.Verb == PutRow:
				put = append(put, op)
			case len(row.Backends) > 0:
				replaced = append(replaced, op)
			case sweep:
				gone = append(gone, op)
			}
		}
	}
	return slices.Concat(settings, replaced, put, gone, detach)
}

// held is the row that VPP holds under a key; nil = none.
func (s *State) held(key rule.Key) *Held {
	if h, found := s.Rows[key]; found {
		return &h
	}
	return nil
}

// DiffRow returns the operations on one row; nil stands for none. A row of another shape is deleted
// first, because VPP takes the shape of a row from the request that adds it; the deletions of all
// rows of an address have to come before the first one is added again.
func DiffRow(have *Held, want *Row) []Op {
	if want != nil && len(want.Backends) == 0 {
		want = nil
	}
	switch {
	case want == nil && have == nil, want != nil && have != nil && !have.Odd && have.Equal(*want):
		return nil
	case want == nil:
		return []Op{{Verb: DelRow, Key: have.Key, ID: have.ID}}
	case have == nil || !have.Odd && have.sameShape(want):
		return []Op{{Verb: PutRow, Key: want.Key, Row: want}}
	default:
		return []Op{{Verb: DelRow, Key: have.Key, ID: have.ID, Why: have.differs(want)}, {Verb: PutRow, Key: want.Key, Row: want}}
	}
}

// differs says why one row cannot become the other in place.
func (h *Held) differs(want *Row) string {
	switch {
	case h.Odd:
		return "it is not as the agent makes it"
	case h.Sticky != want.Sticky:
		return "affinity changed"
	case h.Maglev != want.Maglev:
		return "how connections are spread has changed"
	default:
		return "the kind of its address has changed"
	}
}

// backendsPerMessage is how many backends in one message take VPP about as long as a small message.
const backendsPerMessage = 16

// Cost returns about how many small messages keep VPP as busy as the operations of one row do: VPP
// works out all backends of a row again with each change.
func Cost(ops []Op) (messages int) {
	for _, op := range ops {
		messages++
		if op.Row != nil {
			messages += len(op.Row.Backends) / backendsPerMessage
		}
	}
	return messages
}

// DiffSettings returns the operations on settings and interfaces, before the rows and after them.
// Source NAT of another client of VPP stays as it is, and interfaces get the nodes only.
func DiffSettings(have *State, want *Want) (before, after []Op) {
	others := have.Others(want)
	without := Tables{Lost: others.Settings || have.Newer && want.SNAT == NoSNAT()}
	var last []Op
	if !others.Settings {
		before, last = diffSNAT(have, want)
	}
	ip4 := want.IPv4 && others.Serves(false)
	for _, index := range slices.Sorted(maps.Keys(want.Interfaces)) {
		tables := want.Interfaces[index]
		if tables != nil && without.Lost {
			tables = &without
		}
		tablesHeld, attached := have.Attached[index]
		switch {
		case tables == nil && attached:
			after = append(after, Op{Verb: Detach, Interface: index, Tables: without, IPv4: ip4, Newer: have.Newer})
		case tables != nil && (!attached || tablesHeld != nil && *tablesHeld != *tables && !others.Settings):
			before = append(before, Op{Verb: Attach, Interface: index, Tables: *tables, Moved: attached, IPv4: ip4, Newer: have.Newer})
		}
	}
	return before, append(after, last...)
}

// diffSNAT returns the operations on addresses and excluded networks, before those on interfaces
// and after them. A mark is there as long as what it is about: networks come before the address
// without which VPP replaces nothing, and go after it. In VPP 26.06 they belong to the address.
func diffSNAT(have *State, want *Want) (before, after []Op) {
	address := Op{Verb: SetSNAT, SNAT: want.SNAT, Newer: have.Newer, Held: have.SNAT != NoSNAT()}
	changes := have.SNAT != want.SNAT || have.NoPolicy && want.SNAT != NoSNAT()
	add, del := diffExcluded(have, want, changes)
	switch {
	case want.SNAT == NoSNAT():
		before, after = []Op{address, add}, []Op{del}
	case !changes:
		add.Del = del.Del
		before = []Op{add}
	case have.Newer:
		before = []Op{address, add}
	default:
		before = []Op{add, address, del}
	}
	empty := func(op Op) bool {
		return op.Verb == SetTargets && len(op.Add)+len(op.Del) == 0 || op.Verb == SetSNAT && !changes
	}
	return slices.DeleteFunc(before, empty), slices.DeleteFunc(after, empty)
}

// diffExcluded returns the networks and marks to be added and removed; address says that the
// address changes as well.
func diffExcluded(have *State, want *Want, address bool) (add, del Op) {
	add, del = Op{Verb: SetTargets}, Op{Verb: SetTargets}
	if have.Newer && want.SNAT == NoSNAT() {
		return add, del // they go with the address
	}
	foreign, held := have.foreign(), have.Excluded
	if have.Newer && address {
		held = nil
	}
	excluded := withMarks(want.excluded(have.kept()), foreign)
	for mark := range want.marks(have) {
		excluded[mark] = true
	}
	maps.Copy(excluded, foreign)
	add.Add, del.Del = missingFrom(held, excluded), missingFrom(excluded, held)
	return add, del
}
