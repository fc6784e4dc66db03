// Package cnat renders services as translations of VPP's CNAT plugin (VPP 25.10 and 26.06): IPv6,
// and IPv4 where no other renderer serves it. It gives interfaces the nodes of CNAT and sets what
// decides about source NAT as well.
//
// The planner is pure; only Read and Apply talk to VPP:
//
//	Plan       view of one service -> rows, and what CNAT cannot express (vpp/rule: which rule of
//	           a frontend counts)
//	(claims)   rows of all services -> one owner for every key; done by actors/render
//	Diff       what VPP holds, what it should hold -> the least operations, in a safe order
//	Read       VPP -> State        (needs a link.Caller)
//	Apply      operations -> VPP   (needs a link.Caller)
//
// Everything but Read and Apply takes values and returns values: no clock, no goroutine, no logger.
// A value is owned by its caller; Rows share the memory of their Backends, so such a slice must not
// be changed after it has been handed out. There is nothing to shut down.
//
// # Properties of VPP that determine the code
//
//   - A translation is added or changed by the same message, with all of its backends. What is
//     taken from the request that adds it cannot be changed: the kind of load balancing, and
//     whether its address is one of VPP (the first translation of the address decides). A
//     translation of another shape is therefore deleted first.
//   - A translation without backends crashes VPP; a row that loses its last backend is deleted. The
//     link refuses such a message as well.
//   - VPP stores no owner, but the flags of the backends, of which it ignores some: these carry the
//     mark of this agent. A translation without it is that of another client of VPP, and is neither
//     changed nor deleted.
//   - VPP says of an interface that it has any node of an arc while its index is beyond those that
//     ever had a feature there; it is asked about the last node of the arc as well, which is no
//     feature. Nodes that are enabled twice run twice, and an interface inherits the tables of an
//     earlier one with its index. So Apply asks first, and sets tables before nodes: an interface
//     that has the nodes has its tables, and a new agent writes nothing.
//   - With an address but without a policy VPP replaces the source of everything that leaves. So
//     the policy is set before the address, and VPP has the policy where it has our address. In
//     26.06 policy and tables belong to the address: the policy follows it in the same batch, and a
//     new address loses the tables.
//   - CNAT takes the address of a row with all its ports, unless the row says that it stays what it
//     is. Only cluster IPs are taken: a service may name the address of any host. VPP 25.10 crashes
//     when an address that stays what it is comes to be below a route that answers with ICMP,
//     without another route of its own. Apply refuses such a row (ErrBelowICMP), Read finds such
//     addresses. Nothing protects from a route that another owner adds later.
//   - Sessions outlive their backend and their translation: established TCP connections and every
//     UDP flow that goes on stay with the backend that has gone, until 30 s (an hour for TCP)
//     without a packet have passed. VPP has no message for them that leaves the translations in
//     place; 26.06 ends them itself.
//   - VPP has no message that returns the networks excluded from source NAT; Read takes them from
//     what the command "show cnat snat-policy" prints.
//   - Source NAT has 16,384 ports for each protocol and node. VPP drops fragments to VIPs, and what
//     is sent to other ports of cluster IPs.
//
// # Which clients keep their address
//
// The policy of Kubernetes decides by the interfaces of a packet and its destination, whether the
// packet belongs to a service or not; the first rule that applies counts. What leaves through an
// interface of the host keeps its source. Of what comes from an interface to the outside the source
// is replaced unless the destination is excluded: everything is, except targets, the endpoints on
// other nodes. Between interfaces that are not those of pods it would be replaced always, therefore
// every interface is in the table of pods. A pod that reaches itself has its source replaced.
//
// So the source is replaced where answers would go past this node, and where no answer would come.
// Packets of no service keep theirs, except those from outside straight to a target.
package cnat
