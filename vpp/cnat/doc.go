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
// Everything except Read and Apply takes values and returns values: no clock, no goroutine, no
// logger. A value is owned by its caller; Rows share the memory of their Backends, so such a slice
// must not be changed after it has been handed out. There is nothing to shut down.
//
// # Properties of VPP that determine the code
//
//   - A translation is added or changed by the same message, with all of its backends. Two
//     properties come from the request that adds it and cannot be changed: the kind of load
//     balancing, and whether its address is one of VPP (the first translation of the address
//     decides). A translation of another shape is therefore deleted first.
//   - A translation without backends crashes VPP; a row that loses its last backend is deleted. The
//     link refuses such a message as well.
//   - VPP stores no owner. It stores the flags of backends and ignores some of them: these carry
//     the mark of this agent. A translation without the mark belongs to another client of VPP, and
//     is neither changed nor deleted.
//   - Source NAT has no owner either: the networks that it excludes carry our marks (owner.go).
//     What another client has set up is neither changed nor deleted, and a family with its address
//     is not served. VPP does not say which policy it has.
//   - VPP answers that an interface has every node of an arc while the arc has never had a feature
//     on an index as high. So Apply asks about the last node of the arc as well, which is no
//     feature of any interface. Nodes that are enabled twice run twice, and an interface inherits
//     the tables of an earlier one with its index. So Apply asks first, and sets tables before
//     nodes: an interface that has the nodes has its tables, and a new agent writes nothing.
//   - With an address but without a policy VPP replaces the source of everything that leaves. So
//     the policy is set before the address, and VPP has the policy where it has our address. In
//     26.06 policy and tables belong to the address: the policy follows it in the same batch, and a
//     new address loses the tables.
//   - CNAT takes the address of a row with all its ports, unless the row has RealIP. Only cluster
//     IPs are taken, because a service may name the address of any host. VPP 25.10 crashes when an
//     address with RealIP has no route of its own and a covering route answers with ICMP. Apply
//     refuses such a row (ErrBelowICMP), Read finds such addresses. The same goes for a route of
//     package routes to VPP itself, which may become one with ICMP. Nothing protects from a route
//     that another owner adds later.
//   - Sessions outlive their backend and their translation: established TCP connections and every
//     UDP flow that goes on stay with the deleted backend until 30 s without a packet have passed
//     (an hour for TCP). VPP has no message for them that leaves the translations in place; 26.06
//     ends them itself.
//   - VPP has no message that returns the networks excluded from source NAT; Read takes them from
//     the output of the command "show cnat snat-policy".
//   - Source NAT has 16,384 ports for each protocol and node. VPP drops packets to
//     other ports of cluster IPs. It drops fragments to VIPs as well: CNAT's nodes stand before the
//     reassembly, and no message changes the order.
//
// # Which clients keep their address
//
// The policy of Kubernetes decides by the interfaces of a packet and its destination, whether the
// packet belongs to a service or not. The first rule that applies counts:
//
//   - A packet that leaves through an interface of the host keeps its source.
//   - A packet from an outside interface gets another source, unless its destination is excluded.
//     Everything is excluded, except the targets: endpoints on other nodes.
//   - Between interfaces outside of the table of pods the source would always be replaced, so every
//     interface is in that table.
//   - A pod that reaches itself gets another source.
//
// So the source is replaced where answers would go past this node, and where no answer would come.
// Packets of no service keep their source, except packets from outside straight to a target.
package cnat
