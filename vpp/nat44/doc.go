// Package nat44 renders services as load-balancing mappings of VPP's NAT44-ED plugin (VPP 25.10, API nat44_ed 5.5.0). It knows the static and
// identity mappings, the addresses of the SNAT pool and the output interfaces of external configuration (vpp/external) as well.
//
// It is a pure core with a thin shell:
//
//	Plan       view of one service -> rows, and what NAT44 cannot express
//	Claims     rows of all services -> one owner for every key
//	Diff       what VPP holds, what it should hold -> the least operations, in a safe order
//	Messages   one operation -> binary API messages
//	Read       VPP -> State        (shell: needs a link.Caller)
//	Apply      operations -> VPP   (shell: needs a link.Caller)
//
// Everything but Read and Apply takes values and returns values: no clock, no goroutine, no logger. A value is owned by its caller;
// Rows share the memory of their Locals, so nobody may change a Locals slice that he has handed out. Claims is the one type with
// state of its own; it belongs to one goroutine. There is nothing to shut down.
//
// # What a row is
//
// A row of a service is one LB mapping (kind Balanced; Static and Identity come from external configuration only): VIP, port and protocol to
// 1..253 backends with equal weights. Facts of VPP that shape it, and what follows:
//
//   - OUT2IN_ONLY stands on every row. Otherwise VPP wants the VIP in its SNAT pool and a backend in one mapping only.
//   - VPP wants at least two entries. With no or one worker every row therefore carries two pads of weight 0 (see Pads) and any change
//     of backends is a single add or delete of a local, hitless for the others. A row of pads alone would make VPP divide by zero, so
//     the last backend goes only together with its row. With several workers weight 0 is not safe: no pads, and a lone backend is
//     entered twice.
//   - The sum of the weights has 8 bits, and neither a weight nor a tag can be changed in place: see Weight, and Row.Beside for what a row
//     keeps rather than lose its connections. What is left that replaces a row: other flags or another affinity, another service, more
//     backends than fit with the weight it has, and the two cases below.
//   - An affinity is not returned by a dump: it is carried in the tag. It is not cleaned by the deletion of a local either, the client
//     would go on to be sent there: a row with affinity that loses a backend is deleted and added again, which forgets all clients.
//   - The deletion of a local ends every session to that address and port, of every row and of both protocols, because VPP looks for
//     them by backend. This is right for an endpoint that is gone, the usual case. It is too much for one that left only one of
//     several services; there is no message that would do less.
//   - Affinity together with an interface that has the inside role alone crashes VPP at the first packet. Roles are added outside
//     first and removed inside first, and an interface found with the inside role alone is completed.
//
// # What NAT44 leaves behind
//
// Whenever an interface becomes an outside one, and pods come all the time, NAT44 enters the external address of every mapping as one of VPP
// into the FIB (source nat-low). It forgets to take that of a load-balancing mapping back: a client of a service that is gone would wait in vain for
// an answer instead of being refused (vpp/routes), and an external address that another host has now could not be reached. So:
//
//   - Before a row goes, its address is withdrawn, where it may be one of VPP (Op.Release): not that of a row that is younger than the last
//     interface (State.Fresh), and Apply asks VPP. Routes do not touch packets that have a row, so that nothing is lost should the row stay.
//   - What was left behind otherwise, by an earlier agent, or when somebody else took the row, is found by Read and withdrawn (Withdraw).
//   - What NAT44 needs stays: the address of anybody's mapping, for which VPP may have to answer ARP requests, and those of the SNAT pool.
//   - NAT44 believes that it still has the address: it enters it again for new interfaces only. An address that has been withdrawn and is put
//     into the SNAT pool or into a static mapping later is therefore not answered for on the interfaces of before. An output interface or a
//     network that routes the address to this node needs no such answer.
//   - Only the default table is looked at.
//
// # Which clients keep their address
//
// SELF_TWICE_NAT replaces the source only where a backend calls itself (hairpin). It is right for cluster IPs and for the policy
// Local. TWICE_NAT replaces the source of every client, with an address that leads back to this node; it is for external frontends
// with the policy Cluster, because the answer has to come back through this node, and for cluster IPs where masqueradeAll asks for it.
// Kubernetes does so wherever the backends are, and so does the row: its flags do not depend on them.
//
// NAT44 has one mapping per VIP, port and protocol, for all clients. Where Kubernetes wants two answers (external policy Local: clients
// outside get the local endpoints, clients on this node all of them) the rule for the clients outside decides, because the other choice
// would show remote endpoints to them and lose their address. The plan reports it as an approximation.
package nat44
