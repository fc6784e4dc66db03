package nat44

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Flags are the flags of a row, with the bits of nat_config_flags.
type Flags uint8

const (
	// TwiceNAT replaces the source address of every client by the twice-NAT address.
	TwiceNAT = Flags(nat_types.NAT_IS_TWICE_NAT)
	// SelfTwiceNAT replaces the source address where the chosen backend is the client itself.
	SelfTwiceNAT = Flags(nat_types.NAT_IS_SELF_TWICE_NAT)
	// Out2InOnly is set on every row with our tag: the mapping is for connections to the VIP
	// only, not for connections that the backend opens.
	Out2InOnly = Flags(nat_types.NAT_IS_OUT2IN_ONLY)

	knownFlags = TwiceNAT | SelfTwiceNAT | Out2InOnly
)

// Words returns the names of the flags, in the order that plans show.
func (f Flags) Words() []string {
	var words []string
	for _, flag := range [...]struct {
		bit  Flags
		word string
	}{{Out2InOnly, "out2in-only"}, {SelfTwiceNAT, "self-twice-nat"}, {TwiceNAT, "twice-nat"}} {
		if f&flag.bit != 0 {
			words = append(words, flag.word)
		}
	}
	return words
}

// String returns the words, separated by commas.
func (f Flags) String() string { return strings.Join(f.Words(), ",") }

// Local is one backend of a row.
type Local struct {
	// Addr is the IPv4 address of the backend.
	Addr netip.Addr
	// Table is the table (VRF) of the interface at which the answers of the backend come in: VPP
	// looks requests up there, and recognises answers nowhere else. A draining backend keeps the
	// table that VPP holds. Entries that are no backends are in table 0.
	Table uint32
	// Port is the port of the backend, 1..65535.
	Port uint16
	// Weight is its share of new connections; the shares of a row add up to 255 at most. 0 = it
	// drains: it keeps its connections and gets no new ones.
	Weight uint8
}

// String returns "ip:port".
func (l Local) String() string { return netip.AddrPortFrom(l.Addr, l.Port).String() }

// Text is String with the table where it is not 0.
func (l Local) Text() string {
	if l.Table == 0 {
		return l.String()
	}
	return fmt.Sprintf("%s (table %d)", l, l.Table)
}

// compareEndpoint orders locals by address and port; table and weight do not matter.
func compareEndpoint(a, b Local) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Port, b.Port))
}

// compareEntry orders locals as VPP tells their entries apart: by address, port and table.
func compareEntry(a, b Local) int {
	return cmp.Or(compareEndpoint(a, b), cmp.Compare(a.Table, b.Table))
}

// Kind is the kind of mapping that a row is in VPP. Services have Balanced rows only, the others
// come from external configuration.
type Kind uint8

// The kinds.
const (
	// Balanced is a load-balancing mapping of a port.
	Balanced Kind = iota
	// Static is a simple mapping of a whole address to another one, in both directions. It has
	// one backend with port 0.
	Static
	// Identity keeps an address, or a port of it, from being translated. It has one backend:
	// itself.
	Identity
)

// String returns the name in texts.
func (k Kind) String() string {
	names := [...]string{Balanced: "row", Static: "static mapping", Identity: "identity mapping"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Row is one mapping, as it should be or as VPP holds it.
type Row struct {
	// The planner and Read set these fields; a row that was handed out does not change.

	rule.Key
	// Kind of mapping. A row that is not Balanced cannot be changed in place, and has no flags,
	// affinity or pads.
	Kind Kind
	// Flags are always Out2InOnly and one of SelfTwiceNAT and TwiceNAT in a planned row.
	Flags Flags
	// Affinity is the time in seconds for which VPP sends a client to the same backend; 0 =
	// none. VPP does not return it in a dump: Read takes it from the tag.
	Affinity uint32
	// Remembered is the time in seconds for which VPP remembers a client after it has freed its
	// last session; 0 = Affinity. Only planned rows have it, because VPP does not return it.
	Remembered uint32
	// Tag marks the row as one of Troupe, see Tag.
	Tag string
	// Rank of the claim. VPP does not hold it.
	Rank rule.Rank
	// Pads says that the row has a pad behind each backend, so that VPP can change everything
	// about its backends in place (see slot).
	Pads bool
	// Locals are the backends that new connections reach, ordered by address and port, without
	// duplicates and pads. Immutable once the row is handed out.
	Locals []Local
	// Draining are the backends with weight 0, ordered like Locals; immutable as well. In a
	// planned row they keep their connections if VPP holds them: VPP never gets a new draining
	// backend.
	Draining []Local

	// Only Read, Record and arrange set these fields: a planned row has none of them.

	// slots is the order in which VPP holds the backends of a row with pads; nil = the order of
	// a new row, or not known. Immutable.
	slots []slot
	// torn is set where VPP lacks an entry of a slot, because a change was interrupted. DiffRow
	// completes such a row.
	torn bool
	// astray are entries of no backend that are not in their places; with them the row is torn.
	astray []Local
	// odd is set by Read where VPP holds something that no planned row can be: duplicates, a
	// single pad, a pad in another table than 0. Such a row equals no other one and is never
	// changed in place.
	odd bool
}

// Equal reports whether VPP treats both rows alike, wherever it holds their backends. Odd and torn
// rows equal no row.
func (r Row) Equal(other Row) bool {
	return r.sameShape(&other) && !r.torn && !other.torn && slices.Equal(r.Locals, other.Locals) && slices.Equal(r.Draining, other.Draining)
}

// sameShape reports whether everything except the backends is equal, so that one row can become the
// other by adding and deleting locals.
func (r *Row) sameShape(other *Row) bool {
	return !r.odd && !other.odd && r.Key == other.Key && r.Kind == other.Kind && r.Flags == other.Flags && r.Affinity == other.Affinity &&
		r.Tag == other.Tag && r.Pads == other.Pads
}

// clone returns the row with a copy of its backends.
func (r Row) clone() Row {
	r.Locals = slices.Clone(r.Locals)
	return r
}

// Entries returns the entries of the row in VPP, in the order in which they are sent: slots of
// backend and pad; without pads the backends, a lone one twice, because VPP requires two entries.
func (r Row) Entries() []Local {
	switch {
	case r.Pads:
		room := [fewSlots]slot{}
		return entries(r.layoutIn(room[:]))
	case len(r.Locals) == 1:
		return append(slices.Clone(r.Locals), r.Locals...)
	}
	return r.Locals
}

// Renderer is the name of this renderer in messages and plans.
const Renderer = "nat44"

// State returns the row as the API and the command line show it, without pads.
func (r Row) State(inSync bool) *messages.RowState {
	state := &messages.RowState{
		Renderer: Renderer, Vip: r.String(), Flags: r.Flags.Words(), AffinitySeconds: r.Affinity, InSync: inSync,
		Locals: make([]*messages.RowLocal, 0, len(r.Locals)),
	}
	for _, local := range r.Locals {
		state.Locals = append(state.Locals, &messages.RowLocal{Address: local.String(), Weight: uint32(local.Weight), Table: local.Table})
	}
	return state
}

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

// Idle reports whether no new connection reaches a backend of the row. VPP holds it for open
// connections.
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

// Limits of one LB mapping in VPP 25.10. With more entries the handler never returns, because it
// counts them in 8 bits; a weight sum of 0 (modulo 256) is a division by zero at the first packet.
const (
	// MaxEntries is the largest number of entries of a row, pads included.
	MaxEntries = 255
	// MinEntries is the smallest number of entries of a row, pads included.
	MinEntries = 2
	// MaxWeight is the largest sum of the weights of a row.
	MaxWeight = 255
	// MaxBackends is the largest number of real backends of a row: each has a pad.
	MaxBackends = MaxEntries / 2
)

// Weight returns the weight that every one of n backends gets in a new row: 7 for 1..36 backends, 2
// for 37..127. The shares of a row with pads change in place, see Row.Beside.
//
// VPP takes the next number of a linear congruential generator modulo the sum of the weights. With
// TWICE_NAT and in hairpin it draws twice per connection, and then the lowest bit of the number
// that chooses the backend does not change. Hence the weights:
//
//   - 7 is an odd factor, so that the shares are near to equal (3 to 4) even where the lowest bit
//     does not change, and neither of two backends is left out, whatever the number of draws
//     between two connections.
//   - 2 gives every backend one even and one odd number, so a lowest bit that does not change has
//     no effect.
func Weight(n int) uint8 {
	if unpairedWeight*n <= MaxWeight {
		return unpairedWeight
	}
	return pairedWeight
}

const (
	// unpairedWeight is the weight for few backends.
	unpairedWeight = 7
	// pairedWeight is the smallest weight that is fair to few backends when two numbers are drawn
	// per connection.
	pairedWeight = 2
	// pairedBackends is how many backends of this weight fit into a row.
	pairedBackends = MaxWeight / pairedWeight
)

// keepsWeight reports whether a row without slots, whose backends have this weight in VPP, keeps it
// when it is to have n backends. A weight that fits and is fair is kept, however few backends are
// left: a better weight is not worth the connections. Weight 1 is kept down to half of what fits
// with weight 2. So a row that grows is replaced once, one that
// shrinks at most once, and a number of backends that alternates around a limit never replaces it.
func keepsWeight(weight uint8, n int) bool {
	switch {
	case weight == 0 || int(weight)*n > MaxWeight:
		return false
	case weight >= pairedWeight:
		return true
	default:
		return 2*n > pairedBackends
	}
}
