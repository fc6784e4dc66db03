package routes

import "net/netip"

// Config is what Plan has to know. The zero value plans for a renderer that serves IPv4 only.
type Config struct {
	// IPv6 says that IPv6 frontends have rows. Without it an external IPv6 address that should be forwarded is left to the network.
	IPv6 bool
	// OtherPorts refuses, of cluster IPs that have rows, the ports that have none, whatever NAT44 does with the address; unless one of its
	// ports is to be dropped, which counts for all. It costs one route per cluster IP. Without it such a port is refused by the route
	// of the service network until NAT44 makes the address its own, and ignored from then on.
	OtherPorts bool
}

// Ground is what is known about addresses that are not those of services. It belongs to its Claims once it was handed over.
type Ground struct {
	// Taken are the addresses of nodes and of VPP: they never get a route.
	Taken map[netip.Addr]bool
	// Connected are the networks that VPP has interfaces in. An external address in one of them may be that of a host, so its route is
	// a Yielding one.
	Connected []netip.Prefix
}

// connected reports whether an address may be that of a neighbour.
func (g Ground) connected(addr netip.Addr) bool {
	for _, p := range g.Connected {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
