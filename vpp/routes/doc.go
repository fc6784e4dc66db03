// Package routes refuses, by routes to VPP itself or unreachable ones, packets that no row of a
// renderer serves: to cluster IPs and external addresses whose services have no endpoints, and to
// ports without a service (VPP 25.10, APIs fib 1.0.0 and ip 3.2.0).
//
// The planner is pure; only Read and Apply talk to VPP:
//
//	Plan       view of one service -> one claim per address
//	Resolve    claims of all services, service networks, addresses of hosts -> one route per
//	           prefix
//	Diff       what VPP holds, what it should hold -> the least operations, in a safe order
//	Message    one operation -> binary API message
//	Read       VPP -> State        (needs a link.Caller)
//	Apply      operations -> VPP   (needs a link.Caller)
//
// Everything except Read and Apply takes values and returns values: no clock, no goroutine, no
// logger. A State belongs to one goroutine. There is nothing to shut down. IPv4 and IPv6 are alike;
// routes are made in the default tables (id 0) only.
//
// # Ownership
//
// VPP keeps, for every prefix, one entry per source of routes and uses the best one; when it is
// deleted, the next one takes over by itself. The routes of this package have sources of their own,
// registered by name (fib_source_add). So ownership is exact: the dump of our source contains our
// routes and no others, and adding or deleting them cannot change a route of another source. VPP
// keeps sources and routes when the client that added them disconnects, and loses both when it
// restarts.
//
// The priority of the source decides what our routes give way to (all of this observed on VPP
// 25.10):
//
//	                        priority   what it is
//	interface               0x03       addresses of VPP and their networks
//	API, CLI, DHCP, ND      0x80-0xc1  configured routes, and routes of a protocol
//	troupe                  0xcf       ours
//	adjacency               0xd0.0     neighbours that VPP has resolved, /32 and /128
//	nat-low                 0xd0.1     addresses that NAT44 has entered
//	default route           0xfd       VPP's own, a drop
//
// nat-low: whenever an interface gets the outside role, NAT44 walks all its mappings and enters the
// external address of each as one of VPP itself, /32. The entry stays when the mapping is deleted,
// until any interface loses its role or vpp/nat44 withdraws it. A TCP client of such an address
// gets no answer to its SYN (a UDP client is refused), and an unreachable route for the whole
// service network does not help, because the /32 is more specific. So clients of a service that has
// lost its last endpoint would time out or be refused depending on which pods were added since,
// wherever a port of the address is still served, or another owner has a row for it. This is why
// every refused address gets a route of its own, and why that route has to beat nat-low.
//
// An external address may be that of a host, and a route of ours would cut it off on every port,
// with every route that has it as its next hop. The priority does not help: the longest prefix wins
// before the best source does, and until VPP has resolved a neighbour our route also prevents the
// resolution. So Apply and Read look up what leads there without the address itself (the prefix
// that is one bit shorter). The address gets a route only if that is the default route or a route
// of ours; otherwise it is Covered.
//
// # What a client sees
//
//	Local    TCP and UDP: ECONNREFUSED at once; ping is answered
//	Reject   IPv4 TCP: EHOSTUNREACH at once; IPv6 TCP: ENETUNREACH at once; UDP: nothing, the ICMP
//	         error is not one that a socket reports. VPP limits the rate of ICMP errors
//	Drop     silence
//
// Local needs VPP's session layer, which sends TCP resets for packets to VPP itself. It takes the
// place of Reject where VPP answers every client (State.Unable, and InterfaceSet.unanswered of the
// agent): VPP checks that the table of the route has a route to the source that ends at an
// interface, or that the API has made. It looks the answer up in the table of the interface where
// the packet came in, of IPv6 by the number of the IPv4 table. Checksums need no care: VPP drops
// packets to itself with wrong ones, as every other receiver does.
//
// NAT runs before the lookup: a packet that
// has a row, hairpin included, never reaches the route. A row whose backend is behind an
// unreachable route does not refuse either: VPP does not translate the ICMP error back, so the
// client does not recognise it.
//
// # Properties of VPP that determine the code
//
//   - The same name can be registered twice and gives two sources; nothing unregisters one, and
//     there are 255 in all. When none is left, VPP answers with success and the id 0, which means
//     "API" in a route. So Apply dumps the sources before it registers, and again afterwards, and
//     never sends 0. Of several sources of one name and priority the one with the lowest id is used
//     (two agents may have registered at the same time); the routes of the others are moved, and so
//     are those of a source with our name and another priority.
//   - A route of an id that is not registered makes VPP read behind the end of its table: it
//     crashed with one number, and with others it entered a drop that beat every source. Ids are
//     therefore not used across a restart of VPP: Apply looks them up every time, and sends nothing
//     where they differ from those in State.
//   - A dump by source returns only prefixes where this source wins. A route of ours that a better
//     one hides is in no dump. Read looks such prefixes up one by one, and State.Inherit keeps the
//     hidden ones; an agent that has just started does not know them and adds the route once more,
//     which changes nothing. A hidden route that is not wanted any more is found when the better
//     route is deleted. The same holds for one hidden by another route of ours, which only two
//     agents at the same time, or one that stopped between adding and deleting, leave behind.
//   - Adding a route again replaces it in one step. Deleting a missing one changes nothing and
//     succeeds, also where another source has a route for the prefix. VPP keeps a prefix with the
//     host bits of the first route; ours are masked.
//   - 10,000 routes take 0.1 s to add in one pipelined stream and about 1.5 MB; their dump 20 ms.
//
// # Order
//
// Routes and rows need not wait for each other: a packet that has a row never reaches a route. Diff
// moves a route between sources by adding before deleting. Unwanted routes are deleted with sweep
// only, that is when every service has rendered.
package routes
