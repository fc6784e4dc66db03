package routes

import (
	"fmt"
	"net/netip"
)

// Kind is what a route does with a packet.
type Kind uint8

const (
	// Drop discards silently (path type DROP).
	Drop Kind = iota + 1
	// Reject discards and tells the client (path type ICMP_UNREACH): host unreachable for IPv4, no route for IPv6.
	Reject
)

// String returns the name of the kind; "other" for a path that no route of ours has.
func (k Kind) String() string {
	switch k {
	case Drop:
		return "drop"
	case Reject:
		return "reject"
	default:
		return "other"
	}
}

// Rank says what a route gives way to; every rank is a source of VPP's FIB.
type Rank uint8

const (
	// Firm routes give way to what somebody configured: addresses of VPP, routes by API, CLI or a protocol. For addresses that only
	// Kubernetes gives away.
	Firm Rank = iota + 1
	// Yielding routes give way to neighbours that VPP has resolved, too, and to what NAT44 has made its own. For addresses that may be
	// those of a host.
	Yielding
)

// String returns the name of the rank.
func (r Rank) String() string {
	switch r {
	case Firm:
		return "firm"
	case Yielding:
		return "yielding"
	default:
		return fmt.Sprintf("rank-%d", uint8(r))
	}
}

// ranks are all ranks in the order in which they are registered.
var ranks = [...]Rank{Firm, Yielding}

// Route is what VPP should do with packets to a prefix for which there is no row and no better route.
type Route struct {
	// Kind is what is done.
	Kind Kind
	// Rank is what it gives way to.
	Rank Rank
}

// String returns the route in one word or two.
func (r Route) String() string {
	if r.Rank == Yielding {
		return "yielding " + r.Kind.String()
	}
	return r.Kind.String()
}

// Want is what VPP should hold: one route per prefix. Prefixes must be masked.
type Want map[netip.Prefix]Route

// comparePrefix orders prefixes: IPv4 first, by address, the shorter one first.
func comparePrefix(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// host returns the prefix of one address.
func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

// usable reports whether an address can be that of a service, so that a route for it makes sense.
func usable(addr netip.Addr) bool {
	return addr.IsValid() && addr.Zone() == "" && !addr.Is4In6() && !addr.IsUnspecified() && !addr.IsMulticast() && !addr.IsLoopback() &&
		!addr.IsLinkLocalUnicast()
}
