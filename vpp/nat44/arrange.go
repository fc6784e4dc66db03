package nat44

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// arrange returns the operations that turn the slots that VPP holds into the slots of the wanted
// row. It returns false where no order of them is safe; rows that the planner makes have one.
//
// The order keeps new connections served at every message: the sum of the shares is never 0 and
// never exceeds 255. Drained backends leave first, while there is room for what their pads take
// back; then shares are lowered, to make room; backends come before others drain or go.
func arrange(have, want *Row) ([]Op, bool) {
	sum, _ := sumOf(have.layout())
	a := arranger{key: have.Key, slots: slices.Clone(have.layout()), least: sum, most: sum}
	goal, ok := a.goal(want)
	if !ok || !a.complete(have, goal) {
		return nil, false
	}
	pending := make([][]int, stages)
	for i := range goal {
		if a.slots[i] != goal[i] {
			stage := stageOf(&a.slots[i], &goal[i])
			pending[stage] = append(pending[stage], i)
		}
	}
	order := slices.Concat(pending...)
	for len(order) > 0 {
		next := slices.IndexFunc(order, func(i int) bool { return a.move(i, goal[i]) })
		if next < 0 {
			return nil, false
		}
		order = slices.Delete(order, next, next+1)
	}
	return a.ops, true
}

// The stages of a change, in their order.
const (
	drained = iota // a drained backend leaves, which raises the sum while its pad is deleted
	lowers
	comes
	raises
	drains
	leaves
	stages
)

// stageOf returns when a slot changes.
func stageOf(from, to *slot) int {
	switch {
	case to.empty() && from.share == 0:
		return drained
	case to.empty():
		return leaves
	case !from.holds(to):
		return comes
	case to.share == 0:
		return drains
	case to.share < from.share:
		return lowers
	default:
		return raises
	}
}

// arranger is the state of arrange. The sum of the shares is between least and most after the
// operations that VPP has not answered, whichever of them it refuses.
type arranger struct {
	key         rule.Key
	slots       []slot
	ops         []Op
	least, most int
}

// goal returns the slots of the wanted row. Held backends keep their slots, new ones get the first
// empty slots. Then the row grows; where it cannot, they take the slots of backends that leave.
func (a *arranger) goal(want *Row) ([]slot, bool) {
	wants := make(map[netip.AddrPort]Local, len(want.Locals)+len(want.Draining))
	for _, l := range slices.Concat(want.Draining, want.Locals) {
		wants[l.Endpoint()] = l
	}
	goal := make([]slot, len(a.slots))
	// The entry of a backend in another table takes the place of the former one. A lone one comes
	// to an empty slot first, so that the row always has a backend.
	aside := len(want.Locals) == 1 && want.Affinity == 0
	var empty, leaving []int
	for i, s := range a.slots {
		l, wanted := wants[s.backend]
		switch {
		case s.empty():
			empty = append(empty, i)
		case !wanted || l.Weight > s.weight || s.noBackend || l.Table != s.table && (aside || a.has(l)):
			leaving = append(leaving, i)
		default:
			goal[i] = slot{backend: s.backend, table: l.Table, weight: s.weight, share: l.Weight}
			delete(wants, s.backend)
		}
	}
	var coming []Local
	for _, l := range want.Locals { // a draining backend that VPP does not hold has no connections
		if _, open := wants[l.Endpoint()]; open {
			coming = append(coming, l)
		}
	}
	if missing := len(coming) - len(empty); missing > 0 || slotsFor(len(goal)) != len(goal) {
		for size := slotsFor(len(goal) + max(missing, 0)); len(goal) < size; {
			empty, goal = append(empty, len(goal)), append(goal, slot{})
		}
	}
	places := slices.Concat(empty, leaving)
	if want.Affinity > 0 { // clients would go on to come to an empty place, see inSlots
		places = slices.Concat(leaving, empty)
	}
	if len(coming) > len(places) {
		return nil, false
	}
	for i, l := range coming {
		goal[places[i]] = slot{backend: l.Endpoint(), table: l.Table, weight: max(l.Weight, pairedWeight), share: l.Weight}
	}
	return goal, true
}

// has reports whether VPP holds the entry of a backend.
func (a *arranger) has(l Local) bool {
	return slices.ContainsFunc(a.slots, func(s slot) bool { return compareEntry(s.local(0), l) == 0 && !s.noBackend })
}

// complete adds what VPP lacks: the entries of torn slots, before any other place becomes free,
// then the slots at the end.
func (a *arranger) complete(have *Row, goal []slot) bool {
	if len(have.astray) > 0 {
		c := &change{}
		for _, l := range have.astray {
			c.edits = append(c.edits, edit{l, false})
		}
		a.ops = append(a.ops, Op{Verb: Mend, Key: a.key, change: c, After: loadOf(a.slots)})
	}
	for i := range a.slots {
		s := a.slots[i]
		if !s.torn() {
			continue
		}
		whole := slot{}
		switch {
		case !s.noBackend && goal[i].holds(&s):
			whole = goal[i]
		case !s.noBackend:
			whole = slot{backend: s.backend, table: s.table, weight: s.weight, share: min(s.share, s.weight)}
		}
		c := &change{}
		if s.noBackend {
			c.edits = append(c.edits, edit{whole.entry(i), true})
		}
		if s.stray {
			// VPP does not compare the probability
			c.edits = append(c.edits, edit{newLocal(reservedAt(i, padPort), 0), false})
		}
		if s.noPad || s.stray {
			c.edits = append(c.edits, edit{newLocal(reservedAt(i, padPort), whole.pad()), true})
		}
		if !a.do(Op{Verb: Mend}, c, i, whole) {
			return false
		}
	}
	size := len(goal)
	if size == len(a.slots) && (!have.torn || size != maxSlots || have.load().Entries == MaxEntries) {
		return true
	}
	c := &change{from: len(a.slots), to: make([]slot, size-len(a.slots))}
	for i := len(a.slots); i < size; i++ {
		a.slots = append(a.slots, slot{})
		c.edits = append(c.edits, edit{a.slots[i].entry(i), true}, edit{newLocal(reservedAt(i, padPort), 0), true})
	}
	if size == maxSlots {
		c.edits = append(c.edits, edit{newLocal(reservedAt(maxSlots, emptyPort), 0), true})
	}
	a.ops = append(a.ops, Op{Verb: Grow, Key: a.key, change: c, After: loadOf(a.slots)})
	return true
}

// move changes one slot, and reports whether that is safe now.
func (a *arranger) move(i int, to slot) bool {
	from := a.slots[i]
	pad := func(s *slot) Local { return newLocal(reservedAt(i, padPort), s.pad()) }
	c := &change{}
	repad := from.pad() != to.pad()
	op := Op{Verb: SetShare, Local: to.local(to.share)}
	if from.holds(&to) {
		c.edits = []edit{{pad(&from), false}, {pad(&to), true}}
		return a.do(op, c, i, to)
	}
	if op.Verb = AddLocal; to.empty() {
		op = Op{Verb: DelLocal, Local: from.local(from.share)}
	}
	old, entry := edit{from.entry(i), false}, edit{to.entry(i), true}
	switch {
	case from.pad() != 0:
		// the pad must not be there without its backend, whose weight it takes back
		c.edits = []edit{{pad(&from), false}, old, entry, {pad(&to), true}}
	case !repad:
		c.edits = []edit{old, entry}
	default:
		c.edits = []edit{old, entry, {pad(&from), false}, {pad(&to), true}}
	}
	return a.do(op, c, i, to)
}

// do takes a change of one slot if the row is safe after each edit.
func (a *arranger) do(op Op, c *change, i int, to slot) bool {
	at, before := &a.slots[i], a.slots[i]
	sum, _ := sumOf(a.slots)
	least, most := sum, sum
	for _, s := range c.edits {
		if reservedIndex(s.local.Endpoint(), padPort) >= 0 {
			at.stray = false
			if at.noPad = !s.add; s.add {
				at.share = at.weight + s.local.Weight
			} else {
				at.share = at.weight
			}
		} else if at.noBackend = !s.add; s.add {
			at.weight, at.share = s.local.Weight, s.local.Weight
		} else {
			at.weight, at.share = 0, 0
		}
		now, fits := sumOf(a.slots)
		if !fits || now < 1 || now > MaxWeight {
			*at = before
			return false
		}
		least, most = min(least, now), max(most, now)
	}
	lowers, raises := sum-least, most-sum
	if a.least-lowers < 1 || a.most+raises > MaxWeight {
		op.waits = true
		a.least, a.most = sum, sum
	}
	a.least, a.most = a.least-lowers, a.most+raises
	*at = to
	c.from, c.to = i, []slot{to}
	op.Key, op.change, op.After = a.key, c, loadOf(a.slots)
	a.ops = append(a.ops, op)
	return true
}

// sumOf returns the sum of the shares. It fits where VPP can add up the probabilities in 8 bits at
// every place, and no pad takes more than there is.
func sumOf(slots []slot) (sum int, fits bool) {
	fits = true
	for i := range slots {
		s := &slots[i]
		fits = fits && sum+int(s.weight) <= MaxWeight
		sum += int(s.share)
	}
	return sum, fits
}

// loadOf returns the load of slots in VPP.
func loadOf(slots []slot) Load {
	l := Load{Entries: entriesOf(len(slots))}
	for i := range slots {
		l.Weight += int(slots[i].share)
	}
	return l
}
