// Package routes refuses, by unreachable routes in VPP's FIB, what no row of a renderer serves: packets to cluster IPs and to external
// addresses whose services have no endpoints, and to ports that nobody has (VPP 25.10, APIs fib 1.0.0 and ip 3.2.0).
//
// It is a pure core with a thin shell, like vpp/nat44:
//
//	Plan       view of one service -> what it wants to happen at its addresses
//	Claims     wishes of all services, service networks, addresses of hosts -> Want: one route per prefix
//	Diff       what VPP holds, what it should hold -> the least operations, in a safe order
//	Message    one operation -> binary API message
//	Read       VPP -> State        (shell: needs a link.Caller)
//	Apply      operations -> VPP   (shell: needs a link.Caller)
//
// Everything but Read and Apply takes values and returns values: no clock, no goroutine, no logger. A State and a Claims belong to one
// goroutine each. There is nothing to shut down. IPv4 and IPv6 are alike; routes are made in the default tables (id 0) only.
//
// # Whose route it is
//
// VPP keeps, for every prefix, what each source of routes says about it, and uses the best one; when that goes, the next one takes over by
// itself. The routes of this package have sources of their own, registered by name (fib_source_add). So ownership is exact: what is dumped
// by the id of our source is ours and nothing else is, and adding or deleting it cannot change anybody else's route. VPP keeps sources and
// routes when the client that made them goes, and forgets both when it restarts itself.
//
// There are two sources, because two things that VPP makes by itself must be treated differently (all of this observed on VPP 25.10):
//
//	                        priority   what it is
//	interface               0x03       addresses of VPP and their networks
//	API, CLI, DHCP, ND      0x80-0xc1  routes that somebody configured, or that a protocol brought
//	troupe                  0xcf       Firm: ours
//	adjacency               0xd0.0     neighbours that VPP has resolved, /32 and /128
//	nat-low                 0xd0.1     addresses that NAT44 made its own
//	troupe-yield            0xd1       Yielding: ours, for addresses that may be those of a host
//	default route           0xfd       VPP's own, a drop
//
// nat-low: whenever an interface gets the outside role, NAT44 walks all its mappings and enters the external address of each as one of VPP
// itself, /32. The address stays when the mapping goes; it is withdrawn when any interface loses its role, or by vpp/nat44 when a row of ours
// goes. A client of such an address waits in vain for an answer to its SYN (a UDP client is refused), and an unreachable route for the
// whole service network does not help, because the /32 is more specific. So a service that has lost its last endpoint would hang or not,
// depending on which pods came and went since, wherever a port of the address is still served, or somebody else has a row there. This is why
// every refused address gets a route of its own, and why that one has to beat nat-low.
//
// adjacency: an external address in a network that is connected to VPP may be the address of a host, or of another node that announces
// it. A route that beats the neighbour cuts off that host on every port, and every route whose next hop is that address by recursion with
// it. A Yielding route gives way as soon as VPP knows the neighbour, even when the neighbour shows up later. It gives way to nat-low too,
// there is no priority between the two. While VPP has not heard of the neighbour the route stands in the way of asking for it (no ARP is sent).
// External addresses outside of the connected networks cannot have a neighbour entry; they get a Firm route.
//
// # What a client sees
//
//	Reject   IPv4 TCP: EHOSTUNREACH at once; IPv6 TCP: ENETUNREACH at once; UDP: nothing, the ICMP error is not one that a socket reports
//	Drop     silence
//
// A TCP reset or a port unreachable is not to be had this way. NAT runs before the lookup: a route never touches a packet that has a row,
// hairpin included. A row whose backend lies behind an unreachable route does not refuse either: VPP does not translate the ICMP error
// back, the client does not recognise it.
//
// # Facts of VPP that shape the code
//
//   - The same name can be registered twice and gives two sources; nothing unregisters one, and there are 255 in all. When there is none
//     left, VPP answers with success and the id 0. In a route the id 0 means "API". So Apply dumps the sources before it registers, and
//     again afterwards, and never sends 0. Of several sources of one name and priority the one with the lowest id is used (two agents may
//     have registered at the same time); the routes of the others are moved. So is what a source of our name with another priority holds.
//   - A route of an id that is not registered makes VPP read behind the end of its table: it crashed with one number, and with others it
//     entered a drop that beat every source. Ids are therefore never trusted over a restart of VPP: Apply looks them up every time, and
//     sends nothing where they are not what they were when State was read.
//   - A dump by source returns only prefixes where this source wins. A route of ours beneath a better one is in no dump at all. Read looks
//     such prefixes up one by one, and State remembers by Inherit what lies beneath; an agent that has just started does not know it, adds
//     the route once more, which changes nothing. One that is not wanted any more is found when the better route goes; so is one beneath
//     another route of ours, which only agents that raced, or one that died between adding and deleting, leave behind.
//   - Adding a route again replaces it in one step. Deleting one that is not there changes nothing and is a success, also where others
//     have a route for the prefix. A prefix is kept with the host bits of who named it first; ours are masked.
//   - 10,000 routes take 0.1 s to add in one pipelined stream and about 1.5 MB; their dump 20 ms.
//
// # Order
//
// Routes and rows need not wait for each other: a packet that has a row never sees a route. Diff moves a route between sources by adding
// before deleting. Routes that nobody wants are deleted with sweep only, that is when every service has spoken.
package routes
