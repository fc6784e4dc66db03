package model

import (
	"net/netip"

	"go.fd.io/govpp/binapi/ip_types"
)

// maxTag is the longest tag that VPP keeps; it forces the last byte to NUL.
const maxTag = 63

// Clip cuts a tag to what VPP keeps of it.
func Clip(tag string) string {
	return tag[:min(len(tag), maxTag)]
}

// FamilyBit returns the index of an address family in model.tables.
func FamilyBit(ip6 bool) int {
	if ip6 {
		return 1
	}
	return 0
}

// FromPrefix decodes an API prefix, host bits included.
func FromPrefix(p ip_types.Prefix) (netip.Prefix, bool) {
	prefix := netip.PrefixFrom(FromAddress(p.Address), int(p.Len))
	return prefix, prefix.IsValid()
}

// ToPrefix encodes a prefix for the API, host bits included.
func ToPrefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: ToAddress(p.Addr()), Len: uint8(p.Bits())}
}

// FromAddress decodes an API address.
func FromAddress(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(a.Un.GetIP6())
	}
	return netip.AddrFrom4(a.Un.GetIP4())
}

// ToAddress encodes an address for the API.
func ToAddress(addr netip.Addr) ip_types.Address {
	if addr.Is4() {
		return ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(addr.As4())}
	}
	return ip_types.Address{Af: ip_types.ADDRESS_IP6, Un: ip_types.AddressUnionIP6(addr.As16())}
}

// ToIP4 encodes an ip4 address; anything else becomes 0.0.0.0.
func ToIP4(addr netip.Addr) ip_types.IP4Address {
	if addr.Is4() {
		return addr.As4()
	}
	return ip_types.IP4Address{}
}

// FromIP4 decodes an ip4 address.
func FromIP4(a ip_types.IP4Address) netip.Addr {
	return netip.AddrFrom4(a)
}
