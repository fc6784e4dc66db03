// Package interfaces derives the purpose of VPP's interfaces from the state of VPP, so that it
// works with every CNI.
//
// A Reader reads VPP: interfaces, addresses, tables, bridge domains, and one route lookup for every
// address of a pod or local endpoint and for the default routes. It follows routes to next hops and
// "look up in another table". Derive, which keeps no state, computes a
// complete messages.InterfaceSet from the answers and the node's pods. The same input always gives
// the same set, in whatever order VPP or Kubernetes list things, so a caller may run Discover at
// any time and compare.
//
// # Roles
//
// A frontend is an interface through which a client may enter: every interface that is up, works on
// layer 3 and is not VPP's own. It works on layer 3 when it has an address, borrows one
// (unnumbered), is the virtual interface of a bridge domain, or is the exit of a route that was
// looked up. A backend is a frontend that may lead to an endpoint: the uplink, tunnels and bridge
// virtual interfaces, because endpoints of other nodes are reached through them, and every
// interface that a local endpoint's address leads to. Pods that the CNI has reported behind an
// interface (Input.Attached) count as behind it, even before the routes lead to it.
//
// # Uplink, addresses of the node, tables
//
// The uplink is the interface of the default route, that of table 0 first. A loopback outside of
// bridge domains is the uplink only if nothing else is, because VPP keeps routes of deleted
// interfaces and gives their indices to new ones. The addresses of the node are those of the
// interfaces that have one of its addresses in Kubernetes, otherwise those of the uplink.
//
// Where interfaces are in several IPv4 tables (VRFs), the set says to which table the routes of
// endpoints lead: of local endpoints one by one, of remote ones by the pod networks and addresses
// of their nodes, of all others by the default route. The answers of an endpoint come in there.
//
// # Cost
//
// With n interfaces and a addresses to look up, a complete round sends 4 dumps of lists, 2n dumps
// of addresses and a+2 route lookups, plus the next hops of recursive routes; each dump is followed
// by a control_ping. Where VPP has several tables, it asks n interfaces for theirs, and looks up a
// route for each pod network and address of other nodes. Each route that table 0 does not have is
// looked up in all tables, up to a limit. VPP 25.10 has no dump of all addresses. While nothing
// changes, a Reader repeats a discovery with a number of requests that does not depend on n and a.
//
// # Use
//
// Discover is called by the actor "interfaces" whenever the link comes up, VPP reports an interface
// event, the pods or local endpoints change, and on a slow timer: VPP has no events for addresses,
// routes and tags. It sends reads only and changes nothing in VPP. Derive and everything below it
// are pure and may be called from anywhere. The goroutines of Discover end before it returns.
package interfaces
