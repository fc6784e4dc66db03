// Package nat44 renders services as load-balancing mappings of VPP's NAT44-ED plugin (VPP 25.10,
// API nat44_ed 5.5.0). It knows the static and identity mappings, the addresses of the SNAT pool
// and the output interfaces of external configuration (vpp/external) as well.
//
// The planner is pure; only Read and Apply talk to VPP:
//
//	Plan       view of one service -> rows, and what NAT44 cannot express (vpp/rule: which rule of
//	           a frontend counts)
//	(claims)   rows of all services -> one owner for every key; done by actors/render
//	Diff       what VPP holds, what it should hold -> the least operations, in a safe order
//	Messages   one operation -> binary API messages
//	Read       VPP -> State        (needs a link.Caller)
//	Apply      operations -> VPP   (needs a link.Caller)
//
// Everything except Read and Apply takes values and returns values: no clock, no goroutine, no
// logger. A value is owned by its caller; Rows share the memory of their Locals, so a Locals slice
// must not be changed after it has been handed out. There is nothing to shut down.
//
// # What a row is
//
// A row of a service is one LB mapping (kind Balanced; Static and Identity come from external
// configuration only): VIP, port and protocol to 1..127 backends. Properties of VPP that determine
// its form:
//
//   - Every row has the flag OUT2IN_ONLY. Without it VPP requires the VIP in its SNAT pool and
//     accepts a backend in one mapping only.
//   - VPP cannot change a weight in place, and the deletion of a local ends its sessions. With no
//     or one worker a row therefore consists of slots of backend and pad (see slot): the pad takes
//     back as much of the backend's weight as is needed for its share, and is replaced without
//     ending a session. A backend with the share 0 drains. A row without any share would make VPP
//     divide by zero, so the last backend is deleted only together with its row, or leads packets
//     back to the VIP (Target). With several workers weight 0 is not safe: rows have no pads, and a
//     lone backend is entered twice.
//   - Neither the flags, nor the affinity, nor the tag of a row can be changed in place. A row is
//     replaced for other flags, another affinity, another service, and a backend that a row with
//     affinity loses; see Row.Beside for what it keeps so that its connections survive.
//   - A dump does not return the affinity, so the tag carries it. Deleting a local does not clean
//     its affinity entries, so that VPP would go on to send clients there: a row with affinity that
//     loses a backend is deleted and added again, which forgets all clients.
//   - The deletion of a local ends every session to that address and port, of every row and of both
//     protocols, because VPP finds them by backend. The renderer keeps the entry of a backend that
//     other services use (actors/render/nat44).
//   - A row has at most 127 backends; of more it has a subset, see subset. Without pads 253 would
//     fit, with weight 1. VPP's generator may then leave half of them unused while it masquerades,
//     none could drain, and the 128th backend would replace the row and end its connections. The
//     price is the evenness of one service over few nodes. The standard deviation of the load of
//     150 backends, each node with the same clients, is 12 percent over 10 nodes and 6 over 50; of
//     250 backends it is 28 and 13 percent.
//   - Affinity together with an interface that has the inside role alone crashes VPP at the first
//     packet. Roles are added outside first and removed inside first, and an interface found with
//     the inside role alone is completed.
//
// # What NAT44 leaves behind
//
// Whenever an interface becomes an outside one, which each new pod causes, NAT44 enters the
// external address of every mapping as one of VPP into the FIB (source nat-low). It does not remove
// the entry of a load-balancing mapping with the mapping: a client of a deleted service would time
// out instead of being refused (vpp/routes), and an external address that another host has now
// could not be reached. Therefore:
//
//   - Before a row is deleted, its address is withdrawn where it may be one of VPP (Op.Release).
//     Rows that are younger than the last outside interface (State.Fresh) need no withdrawal; for
//     the others Apply reads the FIB. Packets that have a row do not reach the FIB, so nothing is
//     lost should the row stay.
//   - Entries that remain for another reason, such as an earlier agent or a row deleted by another
//     client of VPP, are found by Read and withdrawn (Withdraw).
//   - Entries that NAT44 needs stay: the address of any mapping, for which VPP may have to answer
//     ARP requests, and the addresses of the SNAT pool.
//   - NAT44 does not notice the withdrawal: it enters the address again for new interfaces only.
//     VPP therefore does not answer ARP requests on older interfaces for an address that was
//     withdrawn and is put into the SNAT pool or into a static mapping later. An output interface,
//     or a network that routes the address to this node, needs no such answer.
//   - Only the default table is read.
//
// # Which clients keep their address
//
// SELF_TWICE_NAT replaces the source only where a backend calls itself (hairpin). It is right for
// cluster IPs and for the policy Local. TWICE_NAT replaces the source of every client, with an
// address that leads back to this node; it is for external frontends with the policy Cluster,
// because the answer has to come back through this node, and for cluster IPs with masqueradeAll.
// Kubernetes does so wherever the backends are, and so does the row: its flags do not depend on
// them.
//
// NAT44 has one mapping per VIP, port and protocol, for all clients. Where Kubernetes requires two
// (external policy Local: clients outside get the local endpoints, clients on this node all of
// them) the rule for the clients outside decides, because the other choice would show remote
// endpoints to them and lose their address. The plan reports it as an approximation.
package nat44
