package acl

// Renderer is the name of this part in messages and plans.
const Renderer = "acl"

// Bounds of what is put into VPP. An ACL is applied anew to each of its interfaces when it changes, and VPP forwards nothing meanwhile
// where its main thread does (no workers), or stops its workers: measured on VPP 25.10, 0.35 us per rule and interface, so 16384 rules take
// 12 ms on two interfaces and 0.6 s on 110.
const (
	// MaxRules is the largest number of rules in one ACL, all services together. A rule takes 48 bytes of a message.
	MaxRules = 16384
	// MaxServiceRules is the largest number of rules of one service on interfaces of one class. A list of n source ranges needs about
	// 10 n rules for every frontend that it guards.
	MaxServiceRules = 4096
	// MaxLists is the largest number of ACLs on one interface, input and output together: the count in the messages has 8 bits.
	MaxLists = 255
)

// Config is what the planner has to know about the agent.
type Config struct {
	// IPv6Elsewhere says that somebody else drops what IPv6 frontends do not accept, so that they are no errors here.
	IPv6Elsewhere bool
}
