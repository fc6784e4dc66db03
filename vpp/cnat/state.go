package cnat

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Held is a translation that VPP holds.
type Held struct {
	Row
	// ID names it to VPP, until it is deleted: then VPP gives the id to another one.
	ID uint32
	// Ours says that all of its backends have the mark of this agent.
	Ours bool
	// Odd says that no planned row can be like it: repeated backends, flags, interfaces instead of
	// addresses. It equals no row.
	Odd bool
	// Unsure says that nothing tells yet whether RealIP is set: VPP does not show it, and no
	// service wants the row yet.
	Unsure bool
}

// Same reports whether a later read shows the same row: nothing has changed it in VPP.
func (h Held) Same(later Held) bool {
	if h.Unsure || later.Unsure {
		h.RealIP = later.RealIP
	}
	return h.ID == later.ID && h.Equal(later.Row)
}

// Tables are those of the policy of source NAT that an interface is in. Every interface is in that
// of pods: otherwise VPP replaces the source of all packets between two that are not.
type Tables struct {
	// Host: what leaves here keeps its source. Outside: the source of what comes from here is
	// replaced on the way to a target (Want.Targets).
	Host, Outside bool
	// Lost says that VPP has no tables: that of 26.06 has them with an SNAT address only.
	Lost bool
}

// SNAT are the addresses that replace sources, of IPv4 and IPv6; unspecified = none.
type SNAT [2]netip.Addr

// NoSNAT is what VPP has at its start.
func NoSNAT() SNAT { return SNAT{netip.IPv4Unspecified(), netip.IPv6Unspecified()} }

// Want is the desired state of VPP.
type Want struct {
	// Rows by key, each of the service that owns the key. Rows without backends count as absent.
	Rows map[frontend.Key]Row
	// SNAT are the addresses that replace sources.
	SNAT SNAT
	// Targets are the networks with endpoints on other nodes, see Targets. Partial says that some
	// may be missing: those of VPP stay.
	Targets []netip.Prefix
	Partial bool
	// IPv4 says whether interfaces get the nodes of IPv4 besides those of IPv6.
	IPv4 bool
	// Interfaces by sw_if_index: those that get the nodes; nil = it had them, and loses them.
	// Others are left alone.
	Interfaces map[uint32]*Tables
}

// Want returns the settings of a configuration, without rows and interfaces.
func (c Config) Want() *Want {
	return &Want{SNAT: SNAT{c.snat(false), c.snat(true)}, IPv4: c.IPv4, Interfaces: map[uint32]*Tables{}, Rows: map[frontend.Key]Row{}}
}

// State is what VPP holds: as Read returns it, updated by Record until the next read. It belongs to
// one goroutine.
type State struct {
	// Rows are all translations, those of others included.
	Rows map[frontend.Key]Held
	// SNAT are the addresses that replace sources.
	SNAT SNAT
	// Excluded are the networks on the way to which sources stay.
	Excluded map[netip.Prefix]bool
	// Below are addresses of which no row may be added, because VPP would crash (ErrBelowICMP),
	// with the route that answers with ICMP. Only addresses that were passed to Read, or that Apply
	// has come upon, are in it.
	Below map[netip.Addr]netip.Prefix
	// Newer says that VPP has the CNAT of 26.06.
	Newer bool
	// NoPolicy says that VPP may lack the policy of Kubernetes although it has an address.
	NoPolicy bool
	// Attached are the interfaces that have the nodes of CNAT, as far as is known, with their
	// tables; nil = not known, but those that they should be in, because Apply sets the tables
	// first.
	Attached map[uint32]*Tables
}

// NewState returns the state of a VPP that has just started.
func NewState() *State {
	return &State{Rows: map[frontend.Key]Held{}, SNAT: NoSNAT(), Attached: map[uint32]*Tables{}, Excluded: map[netip.Prefix]bool{}, Below: map[netip.Addr]netip.Prefix{}}
}

// Interfaces are those that are known to have the nodes, ordered.
func (s *State) Interfaces() []uint32 { return slices.Sorted(maps.Keys(s.Attached)) }

// Lose forgets an interface that VPP has no more: the next one of its index has no node.
func (s *State) Lose(index uint32) { delete(s.Attached, index) }

// earlier reports whether an earlier version of the agent has configured VPP: it excluded no
// networks from source NAT, and took other addresses with all their ports.
func (s *State) earlier() bool { return len(s.Excluded) == 0 && s.SNAT != NoSNAT() }

// Inherit copies from the state before, of the same start of VPP, what a read does not return:
// whether the address of a row stays one of VPP, the policy, and the tables of interfaces. After a
// start of the agent the answer is that of what is wanted: an agent plans the same for the same
// addresses, unless it is an earlier version. A nil State is ignored.
func (s *State) Inherit(before *State, want func(frontend.Key) *Row) {
	for key, held := range s.Rows {
		old, known := Held{}, false
		if before != nil {
			old, known = before.Rows[key]
		}
		if known && old.ID == held.ID {
			held.RealIP, held.Unsure = old.RealIP, old.Unsure
		} else if !s.earlier() {
			held.Unsure = true
		}
		s.Rows[key] = held
		s.Settle(key, want(key))
	}
	if before == nil {
		return
	}
	s.NoPolicy = before.NoPolicy || before.SNAT != s.SNAT // the answer to a message may be missing
	for index := range s.Attached {
		s.Attached[index] = before.Attached[index]
	}
}

// Settle takes RealIP of the row under a key from the row that is wanted, if it is unsure. So the
// first row that is wanted after a start of the agent decides.
func (s *State) Settle(key frontend.Key, want *Row) {
	if held, found := s.Rows[key]; found && held.Unsure && want != nil {
		held.RealIP, held.Unsure = want.RealIP, false
		s.Rows[key] = held
	}
}

// Assume takes the tables that are wanted for those that are not known.
func (s *State) Assume(interfaces map[uint32]*Tables) {
	for index, tables := range s.Attached {
		if tables == nil {
			s.Attached[index] = interfaces[index]
		}
	}
}

// Record enters an operation that VPP has carried out, so that the next Diff needs no new read: as
// Apply returns it. Operations with an error, or with an unknown outcome, must not be recorded:
// read instead.
func (s *State) Record(op Op) {
	switch op.Verb {
	case SetSNAT:
		s.SNAT, s.NoPolicy = op.SNAT, false
		if s.Newer {
			s.Excluded = map[netip.Prefix]bool{}
			for index := range s.Attached {
				s.Attached[index] = &Tables{Lost: true}
			}
		}
	case SetTargets:
		for _, p := range op.Add {
			s.Excluded[p] = true
		}
		for _, p := range op.Del {
			delete(s.Excluded, p)
		}
	case Attach:
		s.Attached[op.Interface] = &op.Tables
	case Detach:
		delete(s.Attached, op.Interface)
	case PutRow:
		s.Rows[op.Key] = Held{Row: *op.Row, ID: op.ID, Ours: true}
	case DelRow:
		delete(s.Rows, op.Key)
	}
}
