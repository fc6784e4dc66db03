package acl

import "net/netip"

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
