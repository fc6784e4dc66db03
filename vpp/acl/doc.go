// Package acl drops packets in front of NAT that NAT44 cannot distinguish (VPP 25.10, plugin acl,
// API 2.0.1): input ACLs run before NAT on the arc ip4-unicast and see the VIP.
//
// Two kinds of packets are dropped:
//
//   - packets to a load-balancer address from outside its source ranges
//     (loadBalancerSourceRanges), on every interface;
//   - packets to a frontend whose action for a class of clients is to drop, on the interfaces
//     through which these clients enter. So NAT44 can hold the row of the clients of this node
//     while packets from outside are dropped at the uplink (externalTrafficPolicy Local without
//     local endpoints).
//
// The planner is pure; only Read and Apply talk to VPP:
//
//	Plan       view of one service -> rules
//	Merge      rules of services with room -> the rules of the node, without drops at frontends of
//	           other owners
//	Classes    interface set -> which clients enter where
//	Diff       what VPP holds, what it should hold -> the least operations, in a safe order
//	Compare    what VPP holds, what it should hold -> the frontends whose rules are missing or too
//	           many
//	Message    one operation -> binary API message
//	Read       VPP -> State        (needs a link.Caller)
//	Apply      operations -> VPP   (needs a link.Caller)
//
// Everything except Read and Apply takes values and returns values: no clock, no goroutine, no
// logger. A State belongs to one goroutine. There is nothing to shut down.
//
// # What is in VPP
//
// VPP has no ACL of ours while no rule is wanted. Otherwise it has one deny ACL for every class of
// interfaces with rules, tagged "troupe/deny/remote", "troupe/deny/local" or "troupe/deny/any".
// Behind a large deny ACL there is another one for recent rules, tagged "troupe/deny/remote/recent"
// and so on. Deny ACLs are the first in the input list of their interfaces; the ACLs of other
// owners follow in their order. Our ACLs have deny rules only, because in VPP the first match over
// the whole list decides: a permitting rule would override the other ACLs, while a deny rule
// permits nothing that they drop. The source ranges are therefore turned into their complement.
//
// VPP drops what no rule of a list matches. Where the interface has no ACL of another owner, our
// ACL that permits everything ("troupe/permit") ends the list; Diff removes it as soon as there is
// one. A list never consists of deny ACLs alone. Output lists are never changed.
//
// # Order
//
// An ACL that is attached is changed in place and keeps its index, so that its interfaces are never
// without rules; a list is set in one step. A rule has to be in VPP before the row that relies on
// it, and is deleted only after it: Diff without sweep, then the rows, then Diff with sweep.
//
// # What a change costs
//
// When an ACL changes VPP applies it and all ACLs behind it in the list again, on every interface,
// and forwards nothing meanwhile. So splitting the rules into ACLs side by side saves nothing; only
// the last ones are cheap. Measured on VPP 25.10 with 12,000 rules and 30 interfaces: 0.3 to 0.5 s
// for any change when they are in one ACL, as much in the middle of 24 or 100 ACLs, 9 to 30 ms for
// a change of the recent rules.
//
// # What other users of ACLs have to know
//
//   - An ACL appended after ours on an interface without another one (acl_interface_add_del) has no
//     effect until the next Diff removes our permitting ACL. When a client removes its last ACL
//     from an interface, our deny ACL is alone there, and VPP drops everything until the next Diff.
//     VPP reports neither, so only a frequent Read finds it. A client that sets whole lists should
//     keep the ACLs with our tag.
//   - When the list of an interface changes, VPP deletes the sessions that permit+reflect rules
//     have created there; the next packet of the side that opened the connection creates them
//     again. Replacing an ACL in place deletes none.
//   - VPP permits a packet of such a session without matching any ACL, ours included.
//
// # What is not exact
//
// The rules match every packet, not only the first one of a connection: a client that is not
// allowed any more loses its connections. Fragments after the first one carry no ports. VPP
// compares address and protocol then, so a fragmented datagram to another port of the same address
// is lost for the clients of a rule (VPP's default; the plan reports it for UDP). Therefore there
// is no rule for UDP at addresses that others use: external IPs, node ports and addresses of hosts
// (rule.Ground.Droppable). Source ranges there close the frontend instead. ICMP is not dropped. A
// client is remote or local by the interface through which it enters, not by its address.
package acl
