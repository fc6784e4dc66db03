package acl

import "github.com/troupe-vpp/troupe/vpp/rule"

// Renderer is the name of this package in messages and plans.
const Renderer = "acl"

// Limits of the ACLs in VPP. When an ACL changes VPP applies it, and the ACLs behind it in the
// list, again to each of its interfaces. Meanwhile it forwards nothing (without workers), or stops
// its workers. Measured on VPP 25.10: 0.35 us per rule and interface, so 16384 rules take 12 ms on
// two interfaces and 0.6 s on 110.
const (
	// MaxRules is the largest number of rules on an interface, all services together. A rule
	// takes 48 bytes of a message.
	MaxRules = 16384
	// MaxServiceRules is the largest number of rules of one service on interfaces of one class.
	// A list of n source ranges needs about 10 n rules for every frontend that it applies to.
	MaxServiceRules = 4096
	// MaxLists is the largest number of ACLs on one interface, input and output together: the
	// count in the messages has 8 bits.
	MaxLists = 255
)

// Config holds the settings of the planner.
type Config struct {
	// IPv6Elsewhere says that another component drops what IPv6 frontends do not accept, so
	// that the plan does not report them as errors.
	IPv6Elsewhere bool
	// Routed says that a route (vpp/routes) drops the packets to a cluster IP if all of its
	// ports drop, so that the plan has no rules for them.
	Routed bool
	// Ground are the addresses of hosts, which decide where UDP is not dropped
	// (rule.Ground.Droppable).
	Ground rule.Ground
}
