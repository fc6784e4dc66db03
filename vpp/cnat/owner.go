package cnat

import (
	"crypto/sha256"
	"maps"
	"net/netip"
	"slices"
)

// CNAT has one source NAT for all clients, and stores no owner. The networks that it excludes carry
// the marks of this agent: each of its addresses and networks has a second network in discards,
// made of its text. A mark is set before the network that it is about, and goes after it.

// discards is the network to which no packet goes (RFC 6666), so that to exclude a part of it
// changes nothing.
func discards() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0x01}), 64)
}

// markOf is the mark of an address or a network.
func markOf(setting string) netip.Prefix {
	b, sum := discards().Addr().As16(), sha256.Sum256([]byte("troupe "+setting))
	copy(b[8:], sum[:8])
	return netip.PrefixFrom(netip.AddrFrom16(b), 128)
}

// isMark reports whether a network is a mark.
func isMark(p netip.Prefix) bool { return p.Bits() == 128 && discards().Contains(p.Addr()) }

// Others says which source NAT of CNAT belongs to another client of VPP.
type Others struct {
	// Whose is the address of another client, for IPv4 and IPv6; unspecified = none.
	Whose SNAT
	// Local says for which of them VPP is the destination (State.Local).
	Local [2]bool
	// Settings says that the policy, its tables and the excluded networks belong to another
	// client. They count for both families, and VPP does not say which policy it has.
	Settings bool
}

// Serves reports whether CNAT may serve a family. Where another client has an address, the sources
// of our clients are replaced as that client wants, and answers come back only if VPP has it.
func (o Others) Serves(ip6 bool) bool {
	if ip6 {
		return o.Whose[1].IsUnspecified() || o.Local[1]
	}
	return o.Whose[0].IsUnspecified() || o.Local[0]
}

// Others returns what belongs to another client. An address is ours if it has our mark, or is the
// one that we would set (Want.Own): an earlier version of the agent set no marks.
func (s *State) Others(w *Want) Others {
	o := Others{Whose: NoSNAT(), Local: s.Local}
	marked := s.marked()
	for i, addr := range s.SNAT {
		if !addr.IsUnspecified() && addr != w.Own[i] && addr != w.SNAT[i] && !s.Excluded[markOf(addr.String())] {
			o.Whose[i] = addr
		}
	}
	nobodys := s.SNAT == NoSNAT() && len(s.Excluded) == 0 && !s.Tables
	o.Settings = o.Whose != NoSNAT() || !marked && !nobodys && s.SNAT == NoSNAT()
	return o
}

// Removal returns the operations that remove everything of this agent. If other clients of VPP have
// translations, source NAT or excluded networks, settings and interfaces stay: VPP does not say
// whose they are.
func Removal(have *State) []Op {
	want := &Want{SNAT: NoSNAT(), Own: NoSNAT(), IPv4: true, Interfaces: map[uint32]*Tables{}}
	for index := range have.Attached {
		want.Interfaces[index] = nil
	}
	ops := Diff(have, want, true)
	if have.shared(want) {
		ops = slices.DeleteFunc(ops, func(op Op) bool { return !op.OnRow() })
	}
	return ops
}

// Theirs names the source NAT of another client of VPP, in words.
func (s *State) Theirs() (all []string) {
	o, networks := s.Others(&Want{SNAT: NoSNAT(), Own: NoSNAT()}), s.foreign()
	if o.Settings {
		networks = s.Excluded
	}
	for _, addr := range o.Whose {
		if !addr.IsUnspecified() {
			all = append(all, "CNAT source address "+addr.String())
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(networks), netip.Prefix.Compare) {
		if !isMark(p) {
			all = append(all, "CNAT network without source NAT "+p.String())
		}
	}
	return all
}

// shared reports whether another client of VPP uses CNAT.
func (s *State) shared(w *Want) bool {
	for _, held := range s.Rows {
		if !held.Ours {
			return true
		}
	}
	return s.Others(w).Settings || len(s.foreign()) > 0
}

// marked reports whether a network is our mark.
func (s *State) marked() bool {
	for p := range s.Excluded {
		if isMark(p) {
			return true
		}
	}
	return false
}

// ours reports whether an excluded network is ours. Without any mark, all are: of an earlier
// version of the agent, unless they belong to another client as a whole (Others).
func (s *State) ours(p netip.Prefix, marked bool) bool {
	return isMark(p) || !marked || s.Excluded[markOf(p.String())]
}

// kept are the excluded networks that are ours, without marks.
func (s *State) kept() map[netip.Prefix]bool {
	found, marked := map[netip.Prefix]bool{}, s.marked()
	for p := range s.Excluded {
		if !isMark(p) && s.ours(p, marked) {
			found[p] = true
		}
	}
	return found
}

// foreign are the excluded networks of other clients.
func (s *State) foreign() map[netip.Prefix]bool {
	found, marked := map[netip.Prefix]bool{}, s.marked()
	for p := range s.Excluded {
		if !s.ours(p, marked) {
			found[p] = true
		}
	}
	return found
}

// withMarks adds the marks of networks, except of those that other clients have excluded.
func withMarks(networks, foreign map[netip.Prefix]bool) map[netip.Prefix]bool {
	all := map[netip.Prefix]bool{}
	for p := range networks {
		if all[p] = true; !foreign[p] {
			all[markOf(p.String())] = true
		}
	}
	return all
}

// marks are the marks of the addresses, and of the tables, as long as an interface is in one.
func (w *Want) marks(have *State) map[netip.Prefix]bool {
	found := map[netip.Prefix]bool{}
	for _, addr := range w.SNAT {
		if !addr.IsUnspecified() {
			found[markOf(addr.String())] = true
		}
	}
	leaving := 0
	for index, tables := range w.Interfaces {
		if _, attached := have.Attached[index]; attached && tables == nil {
			leaving++
		}
		found[markOf("tables")] = found[markOf("tables")] || tables != nil
	}
	if w.SNAT != NoSNAT() || have.Tables && (leaving == 0 || leaving < len(have.Attached)) {
		found[markOf("tables")] = true
	}
	maps.DeleteFunc(found, func(_ netip.Prefix, is bool) bool { return !is })
	return found
}

// networks counts the networks that are no marks.
func networks(all []netip.Prefix) (n int) {
	for _, p := range all {
		if !isMark(p) {
			n++
		}
	}
	return n
}

// Excludes returns a network of another client that keeps sources on the way to a target; invalid =
// there is none.
func (s *State) Excludes(targets []netip.Prefix) (found netip.Prefix) {
	for p := range s.foreign() {
		if slices.ContainsFunc(targets, p.Overlaps) && (!found.IsValid() || comparePrefixes(p, found) < 0) {
			found = p
		}
	}
	return found
}
