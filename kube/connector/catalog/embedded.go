package catalog

import (
	"net/netip"
	"slices"
)

// Prefixes of IPv6 addresses that contain an IPv4 address. For this package an IPv4-mapped address
// is an IPv4 address.
var (
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	// RFC 8215: contains prefixes of any length
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16") // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32") // RFC 4380
)

// embedded returns the IPv4 addresses that packets to an IPv6 address may reach, through a
// translator or a tunnel.
func embedded(a netip.Addr) []netip.Addr {
	b := a.As16()
	at := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	last := at(12, 13, 14, 15)
	switch {
	case a.Is4():
		return nil
	case compatible.Contains(a), translated.Contains(a), nat64.Contains(a):
		return []netip.Addr{last}
	case localNAT64.Contains(a):
		// The length of the prefix, 48, 56, 64 or 96, decides the place of the IPv4 address. The
		// other places have zeros.
		all := []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), last}
		return slices.DeleteFunc(all, thisNetwork.Contains)
	case sixToFour.Contains(a):
		return []netip.Addr{at(2, 3, 4, 5)}
	case teredo.Contains(a): // the server, and the client with its bits inverted
		client := last.As4()
		for i := range client {
			client[i] = ^client[i]
		}
		return []netip.Addr{at(4, 5, 6, 7), netip.AddrFrom4(client)}
	}
	return nil
}
