package acl

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Rule drops the packets of some clients to one address, port and protocol.
type Rule struct {
	// Class selects the interfaces of the rule: those through which all of its clients enter.
	Class Class
	// VIP is the destination address.
	VIP netip.Addr
	// Port is the destination port, 1..65535.
	Port uint16
	// Proto is the IANA protocol number, TCP or UDP: VPP compares the ports of no other
	// protocol.
	Proto uint8
	// From are the source addresses; masked, of the family of VIP. It holds all addresses where
	// no client is allowed.
	From netip.Prefix
}

// Key returns the frontend of the rule.
func (r Rule) Key() rule.Key { return rule.Key{Addr: r.VIP, Port: r.Port, Proto: r.Proto} }

// Compare orders rules by frontend, source address, length of the source prefix (a network comes
// before its parts) and class.
func (r Rule) Compare(other Rule) int {
	return cmp.Or(r.Key().Compare(other.Key()), r.From.Addr().Compare(other.From.Addr()), cmp.Compare(r.From.Bits(), other.From.Bits()),
		cmp.Compare(r.Class, other.Class))
}

// String returns one line for logs and diffs.
func (r Rule) String() string { return fmt.Sprintf("drop %s from %s (%s)", r.Key(), r.From, r.Class) }

// valid reports whether VPP accepts the rule and matches what it says.
func (r Rule) valid() bool {
	return r.VIP.IsValid() && r.VIP.Zone() == "" && r.Port != 0 && (r.Proto == rule.TCP || r.Proto == rule.UDP) &&
		r.From.IsValid() && r.From == r.From.Masked() && r.From.Addr().Is4() == r.VIP.Is4()
}

// Minimal returns the rules in order, without duplicates and without rules that another one
// includes: fewer rules cost VPP less time at each change. The same frontend and sources for two
// classes of clients become one rule for both. The argument is not changed.
func Minimal(rules []Rule) []Rule {
	ordered := slices.Clone(rules)
	slices.SortFunc(ordered, Rule.Compare)
	merged := ordered[:0]
	for _, r := range ordered {
		if n := len(merged); n > 0 && merged[n-1].Key() == r.Key() && merged[n-1].From == r.From {
			merged[n-1].Class |= r.Class
			continue
		}
		merged = append(merged, r)
	}
	minimal := merged[:0]
	// around are the rules of the same frontend, kept so far, whose networks contain the
	// current one: the innermost last.
	var around []Rule
	for _, r := range merged {
		for len(around) > 0 && !around[len(around)-1].contains(r) {
			around = around[:len(around)-1]
		}
		if slices.ContainsFunc(around, func(outer Rule) bool { return outer.Class&r.Class == r.Class }) {
			continue
		}
		minimal, around = append(minimal, r), append(around, r)
	}
	return minimal
}

// contains reports whether both rules have the same frontend and this one drops all sources of the
// other.
func (r Rule) contains(other Rule) bool {
	return r.Key() == other.Key() && r.From.Bits() <= other.From.Bits() && r.From.Contains(other.From.Addr())
}

// forInterface returns the rules that apply on interfaces of a class, minimal; their class is that
// of the interface.
func forInterface(rules []Rule, class Class) []Rule {
	var own []Rule
	for _, r := range rules {
		if r.Class.appliesTo(class) {
			r.Class = class
			own = append(own, r)
		}
	}
	return Minimal(own)
}

// Complement returns the networks that are left of within without the allowed ones: as few as
// possible, without overlap and in order; nil where no address is left. Allowed networks of the
// other family, and invalid ones, allow nothing.
func Complement(within netip.Prefix, allowed []netip.Prefix) []netip.Prefix {
	if !within.IsValid() {
		return nil
	}
	masked := make([]netip.Prefix, 0, len(allowed))
	for _, p := range allowed {
		if p.IsValid() {
			masked = append(masked, p.Masked())
		}
	}
	return carve(nil, within.Masked(), masked)
}

// carve appends the part of a network that is not allowed. A network that overlaps no allowed one
// is appended as a whole. Its parent overlaps one, so it is the largest such network, and no
// shorter list exists.
func carve(left []netip.Prefix, network netip.Prefix, allowed []netip.Prefix) []netip.Prefix {
	var touching []netip.Prefix
	for _, p := range allowed {
		if !p.Overlaps(network) {
			continue
		}
		if p.Bits() <= network.Bits() {
			return left
		}
		touching = append(touching, p)
	}
	if len(touching) == 0 {
		return append(left, network)
	}
	low, high := halves(network)
	return carve(carve(left, low, touching), high, touching)
}

// halves splits a masked network that is larger than one address.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	bit := p.Bits()
	bytes := p.Addr().AsSlice()
	bytes[bit/8] |= 0x80 >> (bit % 8)
	upper, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(p.Addr(), bit+1), netip.PrefixFrom(upper, bit+1)
}

// allAddresses returns the network of all addresses of the family of addr: the sources of a rule
// that allows none.
func allAddresses(addr netip.Addr) netip.Prefix {
	if addr.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
