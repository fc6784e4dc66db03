package nat44

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// slot is a place for one backend in a row with pads: two entries of VPP, the backend and its pad.
//
// VPP adds up the probabilities of the entries in 8 bits, draws a number from 1 to the last sum,
// and searches the first sum that is not smaller by bisection. Bisection ends at an entry whose sum
// is at least the number, while the sum of the entry before is smaller. Hence:
//
//   - VPP picks an entry only where the sum rises. Pads, whose probability is (share - weight)
//     modulo 256, lower the sum or leave it, and so do placeholders of empty slots, whose
//     probability is 0: VPP never picks one of them, whatever the number of entries.
//   - With 2^k entries, or 255, bisection compares backends in its last step only. The sums behind
//     the pads are sums of shares, which never fall, so that each backend gets exactly its share.
//   - With another number of entries, while an entry is deleted and added again, VPP may pick a
//     draining backend.
//
// The pads change, the entries of the backends do not. An entry that is deleted and added again
// keeps its place, because VPP's pool hands out the place that became free last.
type slot struct {
	// backend is the endpoint; the zero value = the slot is empty.
	backend netip.AddrPort
	// table is the table of the backend's entry; its pad is in table 0.
	table uint32
	// weight is the probability of the backend's entry and the upper limit of its share; share
	// is its present share of new connections.
	weight, share uint8
	// noBackend and noPad say that VPP lacks this entry, stray that the pad belongs to another
	// backend, because VPP has refused a part of a change.
	noBackend, noPad, stray bool
}

// pad is the probability of the pad.
func (s *slot) pad() uint8 { return s.share - s.weight }

// empty reports whether the slot has no backend.
func (s *slot) empty() bool { return !s.backend.IsValid() }

// torn reports whether an entry of the slot is missing or wrong.
func (s *slot) torn() bool { return s.noBackend || s.noPad || s.stray }

// Entries that are no backends have addresses that are reserved for documentation (RFC 5737) and
// never get a packet: 192.0.2.1 for the first slot, and so on.
const (
	// padPort is the port of pads, emptyPort the port of the placeholders of empty slots.
	padPort   = 2
	emptyPort = 3
)

// maxSlots is the largest number of slots. A row of this size has 255 entries: the last one is the
// placeholder of a slot without a pad, so that bisection works as with 2^k entries.
const maxSlots = MaxEntries / 2

// reservedAt returns the address of a reserved entry.
func reservedAt(slot int, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(slot + 1)}), port)
}

// reservedIndex returns the slot of a reserved entry, or -1.
func reservedIndex(at netip.AddrPort, port uint16) int {
	if at.Port() != port || !at.Addr().Is4() {
		return -1
	}
	a := at.Addr().As4()
	if [3]byte(a[:3]) != [3]byte{192, 0, 2} || a[3] == 0 || int(a[3]) > maxSlots+1 {
		return -1
	}
	return int(a[3]) - 1
}

// Reserved reports whether an address and port belong to the entries of rows that are no backends.
func Reserved(at netip.AddrPort) bool {
	return slices.ContainsFunc([]uint16{padPort, emptyPort}, func(port uint16) bool { return reservedIndex(at, port) >= 0 })
}

// newLocal makes a local in table 0.
func newLocal(at netip.AddrPort, weight uint8) Local {
	return Local{Addr: at.Addr(), Port: at.Port(), Weight: weight}
}

// Endpoint is the address and port of the local.
func (l Local) Endpoint() netip.AddrPort { return netip.AddrPortFrom(l.Addr, l.Port) }

// slotsFor returns the number of slots of a row that has room for n backends. VPP deletes an entry
// of a row with three entries at least, hence two slots.
func slotsFor(n int) int {
	size := 2
	for size < n {
		size *= 2
	}
	return min(size, maxSlots)
}

// entriesOf returns the number of entries of a row with this many slots.
func entriesOf(slots int) int {
	if slots == maxSlots {
		return MaxEntries
	}
	return 2 * slots
}

// layout returns the slots of a row with pads.
func (r *Row) layout() []slot { return r.layoutIn(nil) }

// layoutIn is layout with memory for the slots, which is used where it is large enough.
func (r *Row) layoutIn(room []slot) []slot {
	if r.slots != nil {
		return r.slots
	}
	all := slices.Grow(room[:0], r.size())
	for _, l := range r.Locals {
		all = append(all, slot{backend: l.Endpoint(), table: l.Table, weight: l.Weight, share: l.Weight})
	}
	for len(all) < r.size() {
		all = append(all, slot{})
	}
	return all
}

// size is the number of slots of a row with pads.
func (r *Row) size() int {
	if r.slots != nil {
		return len(r.slots)
	}
	return max(slotsFor(len(r.Locals)), len(r.Locals)) // Op.Check refuses a row that does not fit
}

// fewSlots is the number of slots of nearly all rows at most.
const fewSlots = 8

// place makes the row one with these slots.
func (r *Row) place(slots []slot) {
	r.astray = nil
	r.slots, r.Locals, r.Draining, r.torn = slots, make([]Local, 0, len(slots)), nil, slotsFor(len(slots)) != len(slots)
	for i := range slots {
		s := &slots[i]
		r.torn = r.torn || s.torn()
		switch {
		case s.empty():
		case s.share > 0:
			r.Locals = append(r.Locals, s.local(s.share))
		default:
			r.Draining = append(r.Draining, s.local(0))
		}
	}
	slices.SortFunc(r.Locals, compareEntry)
	slices.SortFunc(r.Draining, compareEntry)
	fresh, room := Row{Locals: r.Locals}, [fewSlots]slot{}
	if slices.Equal(fresh.layoutIn(room[:]), slots) {
		r.slots = nil // the usual case: nothing to remember
		r.Locals = slices.Clip(r.Locals)
	}
}

// LeadsBack reports whether a backend is the frontend of the row itself: a packet that has no
// backend goes there and is treated by VPP's routes as if the row did not exist.
func (r *Row) LeadsBack(l Local) bool { return l.Endpoint() == r.back() }

// back is the frontend of the row as a backend.
func (r *Row) back() netip.AddrPort { return netip.AddrPortFrom(r.Addr, r.Port) }

// entries returns the entries that VPP has of slots, in their order.
func entries(slots []slot) []Local {
	all := make([]Local, 0, entriesOf(len(slots)))
	for i := range slots {
		s := &slots[i]
		if !s.noBackend {
			all = append(all, s.entry(i))
		}
		if !s.noPad {
			all = append(all, newLocal(reservedAt(i, padPort), s.pad()))
		}
	}
	if len(slots) == maxSlots {
		all = append(all, newLocal(reservedAt(maxSlots, emptyPort), 0))
	}
	return all
}

// entry is the backend's entry of the slot at i, or its placeholder.
func (s *slot) entry(i int) Local {
	if s.empty() {
		return newLocal(reservedAt(i, emptyPort), 0)
	}
	return s.local(s.weight)
}

// local is the backend of the slot with a weight.
func (s *slot) local(weight uint8) Local {
	return Local{Addr: s.backend.Addr(), Port: s.backend.Port(), Table: s.table, Weight: weight}
}

// holds reports whether the entry of the backend is the one of another slot too.
func (s *slot) holds(o *slot) bool { return s.backend == o.backend && s.table == o.table }

// parseSlots returns the slots of a row whose entries VPP holds in this order; false where the
// entries have another form. whole is false where a slot lacks entries, as an interrupted change
// leaves it, or where slots are missing at the end. astray are placeholders that are not in their
// places.
func parseSlots(all []Local) (slots []slot, astray []Local, whole, ok bool) {
	filled := false
	half := false // the last slot has no pad yet
	for _, l := range all {
		at := l.Endpoint()
		if i := reservedIndex(at, padPort); i >= 0 {
			if half && i == len(slots) {
				// the pad and the backend of the slot before are both missing
				last := slots[i-1]
				slots[i-1] = slot{noBackend: true, noPad: true}
				slots = append(slots, last)
			}
			if !half && i == len(slots) {
				slots = append(slots, slot{noBackend: true})
			}
			if i != len(slots)-1 || !half && !slots[i].noBackend {
				return nil, nil, false, false
			}
			slots[i].noPad, half = false, false
			if slots[i].share = slots[i].weight + l.Weight; slots[i].share > slots[i].weight {
				slots[i].share, slots[i].stray = 0, true
			}
			continue
		}
		i := reservedIndex(at, emptyPort)
		switch {
		case filled:
			return nil, nil, false, false
		case i >= 0 && l.Weight != 0:
			return nil, nil, false, false
		case i == maxSlots:
			filled = true
			continue
		case i >= 0 && i < len(slots):
			astray = append(astray, l)
			continue
		case i >= 0 && i != len(slots) && i != len(slots)+1:
			return nil, nil, false, false
		case i >= 0:
			slots, half = append(slots, slot{noPad: true}), true
			continue
		}
		if Reserved(at) || len(slots) == maxSlots {
			return nil, nil, false, false
		}
		slots, half = append(slots, slot{backend: at, table: l.Table, weight: l.Weight, share: l.Weight, noPad: true}), true
	}
	whole = len(slots) >= MinEntries && slotsFor(len(slots)) == len(slots) && filled == (len(slots) == maxSlots)
	padded, holes := false, 0
	for i := range slots {
		if slots[i].noBackend || slots[i].noPad {
			holes++
		}
		whole = whole && !slots[i].torn()
		padded = padded || !slots[i].noPad
	}
	// changes are made one after the other
	return slots, astray, whole && len(astray) == 0, padded && holes <= 1
}

// edit adds an entry to a row or deletes it: one message.
type edit struct {
	local Local
	add   bool
}

// change is the effect of one operation on the slots of a row: its edits, and the slots that it
// replaces, from a place on.
type change struct {
	edits []edit
	from  int
	to    []slot
}

// on returns the slots when the change is done; it uses their memory.
func (c *change) on(slots []slot) []slot {
	n := copy(slots[min(c.from, len(slots)):], c.to)
	return append(slots, c.to[n:]...)
}

// messages returns the message of every edit.
func (c *change) messages(key rule.Key) []api.Message {
	msgs := make([]api.Message, len(c.edits))
	for i, s := range c.edits {
		msgs[i] = localMessage(key, s.local, s.add)
	}
	return msgs
}
