package routes

import "net/netip"

// Kind is what a route does with a packet.
type Kind uint8

const (
	// Drop discards silently (path type DROP).
	Drop Kind = iota + 1
	// Reject discards and sends an ICMP error (path type ICMP_UNREACH): host unreachable for IPv4,
	// no route for IPv6.
	Reject
	// Local makes the prefix one of VPP itself (path type LOCAL), where nothing listens: TCP gets a
	// reset, UDP port unreachable, ping an answer. It takes the place of Reject where VPP refuses
	// (State.Unable).
	Local
)

// String returns the name of the kind; "other" for a path that no route of ours has.
func (k Kind) String() string {
	switch k {
	case Drop:
		return "drop"
	case Reject:
		return "reject"
	case Local:
		return "local"
	default:
		return "other"
	}
}

// Route is the treatment of packets to a prefix without a row and without a better route.
type Route struct {
	// Kind of treatment.
	Kind Kind
	// External says that the address is not one that only Kubernetes assigns: it has the route only
	// while nothing else leads there (State.Covered).
	External bool
}

// Refusing returns the route as VPP can have it: Local in place of Reject where no reason is
// against it.
func (r Route) Refusing(unable string) Route {
	if r.Kind == Reject && unable == "" {
		r.Kind = Local
	}
	return r
}

// String returns the route in one word or two.
func (r Route) String() string {
	if r.External {
		return "external " + r.Kind.String()
	}
	return r.Kind.String()
}

// Want is the desired state: one route per prefix. Prefixes must be masked.
type Want map[netip.Prefix]Route

// host returns the prefix of one address.
func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

// usable reports whether a service can have the address.
func usable(addr netip.Addr) bool {
	return addr.IsValid() && addr.Zone() == "" && !addr.Is4In6() && !addr.IsUnspecified() && !addr.IsMulticast() && !addr.IsLoopback() &&
		!addr.IsLinkLocalUnicast()
}
