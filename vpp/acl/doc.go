// Package acl drops, in front of NAT, what NAT44 cannot tell apart (VPP 25.10, plugin acl, API 2.0.1): input ACLs stand before NAT on the arc
// ip4-unicast and see the VIP.
//
// Two things are dropped. Packets to a load-balancer address from outside its source ranges (loadBalancerSourceRanges), from every interface.
// And packets to a frontend whose action for a class of clients is to drop, on the interfaces through which these clients enter: so NAT44 can hold
// the row of the clients of this node while those from outside are dropped at the uplink (externalTrafficPolicy Local without local endpoints).
//
// It is a pure core with a thin shell, like vpp/nat44:
//
//	Plan       view of one service -> rules
//	Fit        plans of all services -> those for which there is room
//	Merge      rules of all services -> the rules of the node, bounded, without those about frontends of others
//	Classes    interface set -> which clients enter where
//	Diff       what VPP holds, what it should hold -> the least operations, in a safe order
//	Compare    what VPP holds, what it should hold -> the frontends whose rules are missing or too many
//	Message    one operation -> binary API message
//	Read       VPP -> State        (shell: needs a link.Caller)
//	Apply      operations -> VPP   (shell: needs a link.Caller)
//
// Everything but Read and Apply takes values and returns values: no clock, no goroutine, no logger. A State belongs to one goroutine. There is
// nothing to shut down.
//
// # What is in VPP
//
// Nothing while nothing is to be dropped. Otherwise one deny ACL for every class of interfaces that has rules, tagged "troupe/deny/remote",
// "troupe/deny/local" or "troupe/deny/any". It stands first in the input list of its interfaces; the ACLs that others have put there follow
// in their order. Our ACLs have deny rules only, because in VPP the first match over the whole list decides: a permitting rule of ours would
// overrule the others, a denying one cannot let through what they drop. The source ranges are therefore turned into their complement.
//
// VPP drops what no rule of a list matches. Where no ACL of others is on the interface, one of ours that permits everything
// ("troupe/permit") ends the list; it goes as soon as there is one. A list never consists of deny ACLs alone. Output lists are never changed.
//
// # Order
//
// An ACL that is attached is changed in place and keeps its index, so that its interfaces are never without; a list is set in one step. A
// rule has to be in VPP before the row that relies on it, and may go only after it: Diff without sweep, then the rows, then Diff with sweep.
//
// # What others have to know
//
//   - Who appends an ACL behind ours on an interface where there was none (acl_interface_add_del) finds that it has no effect until the next
//     Diff takes our permitting ACL away. Who takes the last ACL of his own from an interface leaves our deny ACL alone there, and VPP drops
//     everything until the next Diff. VPP reports neither; a frequent Read is what helps. Who sets whole lists should keep what is tagged ours.
//   - When ACLs come to or go from the list of an interface VPP forgets the sessions that permit+reflect rules of others have made there;
//     they are made again by the next packet of the side that opened the connection. Replacing an ACL in place forgets nothing.
//   - A packet of such a session is let through without asking any ACL, ours included.
//
// # What is not exact
//
// The rules look at every packet, not at the first one of a connection only: a client that is not allowed any more loses the connections that it
// has. Fragments behind the first one carry no ports; VPP compares address and protocol then, so a fragmented datagram to another port of the
// same address is lost for the clients of a rule (VPP's default; the plan reports it for UDP). ICMP is not dropped. A client is remote or
// local by the interface through which it enters, not by its address.
package acl
