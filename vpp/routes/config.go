package routes

import "net/netip"

// Config holds the settings of Plan. The zero value plans for a renderer that serves IPv4 only.
type Config struct {
	// IPv6 says that IPv6 frontends have rows. Without it an external IPv6 address that should be forwarded is left to the network.
	IPv6 bool
	// OtherPorts refuses those ports of a cluster IP with rows that have none, also after NAT44 has entered the address into the FIB; where
	// one of its ports is to be dropped, all of them are. It costs one route per cluster IP. Without it the route of the service network
	// refuses such a port until NAT44 enters the address, and VPP ignores its packets from then on.
	OtherPorts bool
}

// Ground holds the addresses and networks that are not those of services.
type Ground struct {
	// Taken are the addresses of nodes and of VPP: they never get a route.
	Taken map[netip.Addr]bool
	// Connected are the networks that VPP has interfaces in. An external address in one of them may be that of a host, so it gets a
	// Yielding route.
	Connected []netip.Prefix
}

// connected reports whether an address may belong to a neighbour of VPP.
func (g Ground) connected(addr netip.Addr) bool {
	for _, p := range g.Connected {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
