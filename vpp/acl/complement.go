package acl

import "net/netip"

// Complement returns the networks that hold every address of within that is in none of the allowed networks. They are as few as
// possible, do not overlap and are ordered; nil where nothing is left. Allowed networks of the other family, and invalid ones, allow nothing.
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

// carve appends what is left of a network. A network that no allowed one touches is left as a whole, and is the largest one that is, because
// its parent was touched: so there is no shorter list.
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

// everybody returns the network of all addresses of the family of addr.
func everybody(addr netip.Addr) netip.Prefix {
	if addr.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
