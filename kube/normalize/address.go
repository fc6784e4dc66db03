package normalize

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// ParseAddr parses an IP address as upstream's ParseIPSloppy does: leading zeros in IPv4 octets are
// tolerated and mean decimal, IPv4-mapped IPv6 addresses are IPv4 addresses, zones are refused.
func ParseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	// Objects from the time before Go 1.17 may have 010.0.0.1, which every component of Kubernetes
	// read as 10.0.0.1.
	if err != nil {
		addr, err = netip.ParseAddr(withoutLeadingZeros(text))
	}
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%s is not an IP address", show(text))
	}
	return addr.Unmap(), nil
}

// withoutLeadingZeros removes the leading zeros of the octets of an IPv4 address, also of an IPv4
// address at the end of an IPv6 address.
func withoutLeadingZeros(text string) string {
	head := text[:strings.LastIndexByte(text, ':')+1]
	octets := strings.Split(text[len(head):], ".")
	if len(octets) != 4 {
		return text
	}
	for i, octet := range octets {
		if trimmed := strings.TrimLeft(octet, "0"); trimmed != "" {
			octets[i] = trimmed
		} else if octet != "" {
			octets[i] = "0"
		}
	}
	return head + strings.Join(octets, ".")
}

// ParsePrefix parses an address range in CIDR notation. It ignores blanks around the range, reads
// the address like ParseAddr, and clears host bits. A range of IPv4-mapped addresses becomes the
// IPv4 range.
func ParsePrefix(text string) (netip.Prefix, error) {
	bad := fmt.Errorf("%s is not an address range (ip/length)", show(text))
	address, length, found := strings.Cut(strings.TrimSpace(text), "/")
	if !found {
		return netip.Prefix{}, bad
	}
	addr, err := ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, bad
	}
	bits, err := strconv.ParseUint(length, 10, 8)
	if err != nil {
		return netip.Prefix{}, bad
	}
	// The length of ::ffff:10.0.0.0/104 counts from the start of the IPv6 address; below 96 the
	// range is no IPv4 range.
	if addr.Is4() && strings.Contains(address, ":") {
		if bits < 96 {
			return netip.Prefix{}, bad
		}
		bits -= 96
	}
	prefix, err := addr.Prefix(int(bits))
	if err != nil {
		return netip.Prefix{}, bad
	}
	return prefix, nil
}

// family returns the family of an address.
func family(addr netip.Addr) messages.IPFamily {
	if addr.Is4() {
		return messages.IPFamily_IPV4
	}
	return messages.IPFamily_IPV6
}

// unusable returns the reason why no service can be reached at this address; "" if one can.
// linkLocal says whether the field allows link-local addresses: the API server refuses them for
// endpoints and external IPs, not for load balancers.
func unusable(addr netip.Addr, linkLocal bool) string {
	switch {
	case addr.IsUnspecified():
		return "is the unspecified address"
	case addr.Is4() && addr.As4()[0] == 0:
		return `is an address of 0.0.0.0/8 ("this network")`
	case addr.IsLoopback():
		return "is a loopback address"
	case addr.IsMulticast():
		return "is a multicast address"
	case addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is the broadcast address"
	case !linkLocal && addr.IsLinkLocalUnicast():
		return "is a link-local address"
	}
	return ""
}

// serviceAddr parses the address of a service or endpoint, and reports the field if the address is
// unusable.
func (r *report) serviceAddr(field, text string, linkLocal bool) (netip.Addr, bool) {
	addr, err := ParseAddr(text)
	if err != nil {
		r.add(field, "%v", err)
		return netip.Addr{}, false
	}
	if why := unusable(addr, linkLocal); why != "" {
		r.add(field, "%s %s", addr, why)
		return netip.Addr{}, false
	}
	return addr, true
}

// address returns the canonical form of any address, or reports the field.
func (r *report) address(field, text string) (string, bool) {
	addr, err := ParseAddr(text)
	if err != nil {
		r.add(field, "%v", err)
	}
	return addr.String(), err == nil
}
