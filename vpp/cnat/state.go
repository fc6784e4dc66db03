package cnat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Held is a translation that VPP holds.
type Held struct {
	Row
	// ID names it to VPP, until it is deleted: then VPP gives the id to another one.
	ID uint32
	// Ours says that all of its backends have the mark of this agent.
	Ours bool
	// Odd says that no planned row can be like it: repeated backends, flags, interfaces instead
	// of addresses. It equals no row.
	Odd bool
	// Unsure says that RealIP is not known yet: VPP does not show it, and no service wants the
	// row yet.
	Unsure bool
}

// Same reports whether a later read shows the same row: nothing has changed it in VPP.
func (h Held) Same(later Held) bool {
	if h.Unsure || later.Unsure {
		h.RealIP = later.RealIP
	}
	return h.ID == later.ID && h.Equal(later.Row)
}

// Tables are the tables of the source NAT policy that an interface is in. Every interface is in the
// table of pods as well: VPP replaces the source of all packets between interfaces outside of it.
type Tables struct {
	// Host: packets that leave here keep their source. Outside: packets that enter here get
	// another source on the way to a target (Want.Targets).
	Host, Outside bool
	// Lost says that the interface is in no table of ours: VPP 26.06 has them only with an SNAT
	// address, or they belong to another client of VPP.
	Lost bool
}

// SNAT are the addresses that replace sources, of IPv4 and IPv6; unspecified = none.
type SNAT [2]netip.Addr

// NoSNAT is what VPP has at its start.
func NoSNAT() SNAT { return SNAT{netip.IPv4Unspecified(), netip.IPv6Unspecified()} }

// Want is the desired state of VPP.
type Want struct {
	// Rows by key, each of the service that owns the key. Rows without backends count as
	// absent.
	Rows map[rule.Key]Row
	// SNAT are the addresses that replace sources, and Own those of both families that this
	// agent would set: it may have served another family before.
	SNAT, Own SNAT
	// Targets are the networks with endpoints on other nodes, see Targets. Partial says that
	// some may be missing, so that VPP keeps the targets that it has.
	Targets []netip.Prefix
	Partial bool
	// IPv4 says whether interfaces get the nodes of IPv4 as well as the nodes of IPv6.
	IPv4 bool
	// Interfaces that get the nodes, by sw_if_index; nil = the interface loses them. Other
	// interfaces are left alone.
	Interfaces map[uint32]*Tables
}

// Want returns the settings of a configuration, without rows and interfaces.
func (c Config) Want() *Want {
	want := &Want{Own: SNAT{c.snat(false), c.snat(true)}, IPv4: c.IPv4, Interfaces: map[uint32]*Tables{}, Rows: map[rule.Key]Row{}}
	if want.SNAT = want.Own; !c.IPv4 {
		want.SNAT[0] = NoSNAT()[0]
	}
	return want
}

// State is what VPP holds: as Read returns it, updated by Record until the next read. It belongs to
// one goroutine.
type State struct {
	// Rows are all translations, also of other owners.
	Rows map[rule.Key]Held
	// SNAT are the addresses that replace sources.
	SNAT SNAT
	// Local says which of them are addresses of VPP's interfaces: answers to these reach VPP.
	// VPP 26.06 does not say it.
	Local [2]bool
	// Excluded are the networks excluded from source NAT, and our marks (owner.go).
	Excluded map[netip.Prefix]bool
	// Tables says that an interface is in a table of the policy.
	Tables bool
	// Below are addresses for which no row may be added, because VPP would crash
	// (ErrBelowICMP), each with the covering route that answers with ICMP. It holds only
	// addresses that were passed to Read or found by Apply.
	Below map[netip.Addr]netip.Prefix
	// Newer says that VPP has the CNAT of 26.06.
	Newer bool
	// NoPolicy says that VPP may lack the policy of Kubernetes although it has an address.
	NoPolicy bool
	// Attached are the interfaces known to have the nodes of CNAT, with their tables. nil = the
	// tables were not read; they are the wanted ones, because Apply sets the tables first.
	Attached map[uint32]*Tables
}

// NewState returns the state of a VPP that has just started.
func NewState() *State {
	return &State{Rows: map[rule.Key]Held{}, SNAT: NoSNAT(), Attached: map[uint32]*Tables{}, Excluded: map[netip.Prefix]bool{}, Below: map[netip.Addr]netip.Prefix{}}
}

// Inherit copies from the state before, of the same start of VPP, what a read does not return:
// RealIP, the policy, and the tables of interfaces. After a start of the agent RealIP comes from
// the wanted row: an agent plans the same for the same addresses. A nil State is ignored.
func (s *State) Inherit(before *State, want func(rule.Key) *Row) {
	for key, held := range s.Rows {
		old, known := Held{}, false
		if before != nil {
			old, known = before.Rows[key]
		}
		if known && old.ID == held.ID {
			held.RealIP, held.Unsure = old.RealIP, old.Unsure
		} else {
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

// Settle takes RealIP of an unsure row from the wanted one. So the first row that is wanted after a
// start of the agent decides.
func (s *State) Settle(key rule.Key, want *Row) {
	if held, found := s.Rows[key]; found && held.Unsure && want != nil {
		held.RealIP, held.Unsure = want.RealIP, false
		s.Rows[key] = held
	}
}

// Assume enters the wanted tables of interfaces whose tables are not known. Where the tables belong
// to another client of VPP, ours are lost.
func (s *State) Assume(w *Want) {
	others := s.Others(w).Settings
	for index, tables := range s.Attached {
		switch {
		case tables != nil:
		case others:
			s.Attached[index] = &Tables{Lost: true}
		default:
			s.Attached[index] = w.Interfaces[index]
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
		s.Attached[op.Interface], s.Tables = &op.Tables, s.Tables || !op.Tables.Lost
	case Detach:
		delete(s.Attached, op.Interface)
	case PutRow:
		s.Rows[op.Key] = Held{Row: *op.Row, ID: op.ID, Ours: true}
	case DelRow:
		delete(s.Rows, op.Key)
	}
}
