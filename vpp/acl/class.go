package acl

import (
	"cmp"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Class is the set of clients that a rule is for, or that enter through an interface.
type Class uint8

const (
	// Remote are clients that are not on this node. Their packets enter through the uplink, through
	// tunnels, and through every other interface that leads neither to a pod of this node nor to
	// its host.
	Remote Class = 1 << iota
	// Local are the pods and processes of this node.
	Local
	// Any are all clients.
	Any = Remote | Local
)

// String returns the word for a class in tags and texts.
func (c Class) String() string {
	switch c {
	case Remote:
		return "remote"
	case Local:
		return "local"
	case Any:
		return "any"
	default:
		return "none"
	}
}

// appliesTo reports whether a rule for the clients c applies on an interface of the class i. Where
// both kinds of clients enter, only rules for both apply, because the interface is the only thing
// that distinguishes them.
func (c Class) appliesTo(i Class) bool { return i != 0 && i&^Any == 0 && c&i == i }

// classes are the classes that interfaces have, in the order in which their ACLs are created.
var classes = [...]Class{Remote, Local, Any}

// Classes returns which clients enter through which interface of the set, for Want. It leaves out
// interfaces that are no frontends: no client enters there.
func Classes(set *messages.InterfaceSet) map[uint32]Class {
	found := make(map[uint32]Class, len(set.GetInterfaces()))
	for _, i := range set.GetInterfaces() {
		switch {
		case !i.GetFrontend():
		case i.GetLocal():
			found[i.GetSwIfIndex()] = Local
		default:
			found[i.GetSwIfIndex()] = Remote
		}
	}
	return found
}

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
	// IPv6Elsewhere says that another component drops what IPv6 frontends do not accept. The plan
	// does not report these frontends as errors then.
	IPv6Elsewhere bool
	// Routed says that a route (vpp/routes) drops the packets to a cluster IP if all of its
	// ports drop, so that the plan has no rules for them.
	Routed bool
	// Ground are the addresses of hosts, which decide where UDP is not dropped
	// (rule.Ground.Droppable).
	Ground rule.Ground
}

// Tags of our ACLs in VPP. An ACL with another tag belongs to another owner and is never modified.
const (
	// TagPrefix starts the tag of each of our ACLs.
	TagPrefix = "troupe/"
	// PermitTag is the tag of the ACL that permits everything. It ends the list of an interface
	// without an ACL of another owner, because VPP drops what no rule of a list matches.
	PermitTag = TagPrefix + "permit"
	// denyPrefix is followed by the class of the interfaces of the ACL.
	denyPrefix = TagPrefix + "deny/"
	// recentSuffix ends the tag of the ACL with recent rules.
	recentSuffix = "/recent"
)

// DenyTag returns the tag of the deny ACL of a class, the first on its interfaces.
func DenyTag(class Class) string { return denyPrefix + class.String() }

// RecentTag returns the tag of the second deny ACL of a class: the rules that were added since the
// first one was large.
func RecentTag(class Class) string { return DenyTag(class) + recentSuffix }

// denyTags are the tags of the deny ACLs of a class, in their order in a list; nil for no class.
func denyTags(class Class) []string {
	if class == 0 {
		return nil
	}
	return []string{DenyTag(class), RecentTag(class)}
}

// compareTags orders tags; in a class the tag of recent rules comes first.
func compareTags(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimSuffix(a, recentSuffix), strings.TrimSuffix(b, recentSuffix)), cmp.Compare(len(b), len(a)))
}

// Ours reports whether an ACL with this tag belongs to Troupe.
func Ours(tag string) bool { return strings.HasPrefix(tag, TagPrefix) }

// classOfTag returns the class of one of our deny ACLs.
func classOfTag(tag string) (Class, bool) {
	for _, class := range classes {
		if tag == DenyTag(class) || tag == RecentTag(class) {
			return class, true
		}
	}
	return 0, false
}
