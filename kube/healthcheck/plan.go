package healthcheck

import (
	"fmt"
	"net/netip"
)

// claim is the wish of one service for one address.
type claim struct {
	service, address string
}

// planned holds the owner of each listen address.
type planned struct {
	owners map[netip.AddrPort]*Check
	// refused are the claims that lose or are invalid.
	refused map[claim]Problem
}

// plan decides which service owns each address. The result does not depend on the order of the
// checks.
func plan(want []Check) planned {
	p := planned{owners: map[netip.AddrPort]*Check{}, refused: map[claim]Problem{}}
	each(want, func(check *Check, text string) {
		addr, err := parseAddress(text)
		if err != nil {
			p.refused[claim{check.Service, text}] = problemOf(check, text, err)
			return
		}
		// The rule is the same as for contested frontends: the order of the list must not decide.
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

// parseAddress reads "ip:port". An IPv4-mapped IPv6 address counts as IPv4.
func parseAddress(text string) (netip.AddrPort, error) {
	addr, err := netip.ParseAddrPort(text)
	if err != nil || addr.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("%w: %q", ErrAddress, text)
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), nil
}

// network returns the network for net.Listen. It names the family, so that a wildcard address of
// one family never takes the port of the other.
func network(addr netip.AddrPort) string {
	if addr.Addr().Is4() {
		return "tcp4"
	}
	return "tcp6"
}
