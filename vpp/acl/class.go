package acl

import "github.com/troupe-vpp/troupe/messages"

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
