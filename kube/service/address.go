package service

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
)

// maxPort is the largest transport port number.
const maxPort = 65535

// address is one IP address with its canonical text, so that neither is computed twice.
type address struct {
	ip   netip.Addr
	text string
}

// family returns the IP family of the address.
func (a address) family() messages.IPFamily { return familyOf(a.ip) }

// familyOf returns the IP family of an unmapped address.
func familyOf(ip netip.Addr) messages.IPFamily {
	if ip.Is4() {
		return messages.IPFamily_IPV4
	}
	return messages.IPFamily_IPV6
}

// parseAddress reads an address that packets can be sent to. An IPv4-mapped IPv6 address counts as
// IPv4. Addresses with a zone and the unspecified addresses are refused, because each dataplane
// would understand such a frontend differently.
func parseAddress(text string) (address, bool) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return address{}, false
	}
	ip = ip.Unmap()
	if ip.Zone() != "" || ip.IsUnspecified() {
		return address{}, false
	}
	return address{ip: ip, text: canonicalText(ip, text)}, true
}

// canonicalText returns the canonical text of ip. It does not allocate if the given text is
// canonical already, which is the usual case.
func canonicalText(ip netip.Addr, text string) string {
	var buffer [48]byte
	if string(ip.AppendTo(buffer[:0])) == text {
		return text
	}
	return ip.String()
}

// parsePrefix reads a CIDR, clears its host bits and turns an IPv4-mapped IPv6 range into IPv4.
func parsePrefix(text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	if ip := prefix.Addr(); ip.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(ip.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), true
}

// anyContains reports whether one of the prefixes contains ip.
func anyContains(prefixes []netip.Prefix, ip netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// hasFamily reports whether one of the prefixes is of the family.
func hasFamily(prefixes []netip.Prefix, family messages.IPFamily) bool {
	for _, prefix := range prefixes {
		if prefix.IsValid() && familyOf(prefix.Addr()) == family {
			return true
		}
	}
	return false
}

// validPort reports whether the number can be a port of a packet.
func validPort(port uint32) bool { return port > 0 && port <= maxPort }
