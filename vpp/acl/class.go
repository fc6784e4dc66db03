package acl

import "github.com/troupe-vpp/troupe/messages"

// Class says which clients a rule is for, and which clients enter through an interface. It is a set: Any is both.
type Class uint8

const (
	// Remote are clients that are not on this node. Their packets enter through the uplink, through tunnels, and through everything else
	// that leads neither to a pod of this node nor to its host.
	Remote Class = 1 << iota
	// Local are the pods and processes of this node.
	Local
	// Any are all clients.
	Any = Remote | Local
)

// String returns the word for a class, as it stands in tags and texts.
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

// appliesTo reports whether a rule for the clients c may stand on an interface of the class i. Where both kinds of clients enter only rules
// for both may, because nothing else tells them apart there.
func (c Class) appliesTo(i Class) bool { return i != 0 && i&^Any == 0 && c&i == i }

// classes are the classes that interfaces have, in the order in which their ACLs are made.
var classes = [...]Class{Remote, Local, Any}

// Classes says which clients enter through which interface of the set, for Want. Interfaces that are no frontends are left out: no client
// enters there.
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
