package simulator

import (
	"net/netip"

	"go.fd.io/govpp/binapi/ip_types"
)

// maxTag is the longest tag that VPP keeps; it forces the last byte to NUL.
const maxTag = 63

// clip cuts a tag to what VPP keeps of it.
func clip(tag string) string {
	return tag[:min(len(tag), maxTag)]
}

// familyBit returns the index of an address family in model.tables.
func familyBit(ip6 bool) int {
	if ip6 {
		return 1
	}
	return 0
}

// fromPrefix decodes an API prefix, host bits included.
func fromPrefix(p ip_types.Prefix) (netip.Prefix, bool) {
	prefix := netip.PrefixFrom(fromAddress(p.Address), int(p.Len))
	return prefix, prefix.IsValid()
}

// toPrefix encodes a prefix for the API, host bits included.
func toPrefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: toAddress(p.Addr()), Len: uint8(p.Bits())}
}

// fromAddress decodes an API address.
func fromAddress(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(a.Un.GetIP6())
	}
	return netip.AddrFrom4(a.Un.GetIP4())
}

// toAddress encodes an address for the API.
func toAddress(addr netip.Addr) ip_types.Address {
	if addr.Is4() {
		return ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(addr.As4())}
	}
	return ip_types.Address{Af: ip_types.ADDRESS_IP6, Un: ip_types.AddressUnionIP6(addr.As16())}
}

// toIP4 encodes an ip4 address; anything else becomes 0.0.0.0.
func toIP4(addr netip.Addr) ip_types.IP4Address {
	if addr.Is4() {
		return addr.As4()
	}
	return ip_types.IP4Address{}
}

// fromIP4 decodes an ip4 address.
func fromIP4(a ip_types.IP4Address) netip.Addr {
	return netip.AddrFrom4(a)
}
