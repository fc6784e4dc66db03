package healthcheck

import (
	"fmt"
	"net/netip"
)

// claim is one service at one address.
type claim struct {
	service, address string
}

// planned is the owner of each listen address.
type planned struct {
	owners map[netip.AddrPort]*Check
	// refused are the claims that lose or are invalid.
	refused map[claim]Problem
}

// plan decides which service owns which address. The result does not depend on the order of the
// checks.
func plan(want []Check) planned {
	p := planned{owners: map[netip.AddrPort]*Check{}, refused: map[claim]Problem{}}
	each(want, func(check *Check, text string) {
		addr, err := parseAddress(text)
		if err != nil {
			p.refused[claim{check.Service, text}] = problemOf(check, text, err)
			return
		}
		// The same rule as for every contested address: the order of the list must not decide.
		if owner := p.owners[addr]; owner == nil || compareClaims(check, owner) < 0 {
			p.owners[addr] = check
		}
	})
	each(want, func(check *Check, text string) {
		addr, err := parseAddress(text)
		if err != nil {
			return
		}
		if owner := p.owners[addr]; owner.Service != check.Service {
			text = addr.String()
			p.refused[claim{check.Service, text}] = problemOf(check, text, fmt.Errorf("%w, %s", ErrContested, owner.Service))
		}
	})
	return p
}

// each visits every listen address of every check.
func each(want []Check, visit func(check *Check, address string)) {
	for i := range want {
		for _, text := range want[i].Health.GetListenAddresses() {
			visit(&want[i], text)
		}
	}
}

// parseAddress reads "ip:port". An IPv4 address that is written as an IPv6 one is the IPv4 address.
func parseAddress(text string) (netip.AddrPort, error) {
	addr, err := netip.ParseAddrPort(text)
	if err != nil || addr.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("%w: %q", ErrAddress, text)
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), nil
}

// network names the family for net.Listen, so that a wildcard of one family never takes the port of
// the other.
func network(addr netip.AddrPort) string {
	if addr.Addr().Is4() {
		return "tcp4"
	}
	return "tcp6"
}
