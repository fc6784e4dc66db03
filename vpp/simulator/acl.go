package simulator

import (
	"net/netip"
	"slices"
)

// aclAction is what a rule of an access list does.
type aclAction uint8

const (
	aclDeny aclAction = iota
	aclPermit
	aclReflect // permit, and remember the flow in both directions
)

// aclRule is one rule of an access list: of one address family.
type aclRule struct {
	action           aclAction
	src, dst         netip.Prefix
	proto            uint8     // 0 = any, and ports do not matter then
	srcPort, dstPort [2]uint16 // first and last; type and code of ICMP
	flags, mask      TCPFlags
}

// accessList is one ACL.
type accessList struct {
	tag   string
	rules []aclRule
}

// aclLists are the ACLs of one interface.
type aclLists struct {
	in, out []uint32
}

// aclFlow is a flow that a reflecting rule let pass through an interface, in
// either direction: low is the smaller endpoint.
type aclFlow struct {
	swIf      uint32
	low, high netip.AddrPort
	proto     uint8
}

// acls is the state of the ACL plugin. Flows have no lifetime: they end with a
// change of the lists of their interface.
type acls struct {
	all   pool[*accessList]
	lists map[uint32]*aclLists
	flows map[aclFlow]bool
}

func newACLs() *acls {
	return &acls{lists: make(map[uint32]*aclLists), flows: make(map[aclFlow]bool)}
}

// of returns the lists of an interface, empty ones if it has none.
func (a *acls) of(swIf uint32) *aclLists {
	if l := a.lists[swIf]; l != nil {
		return l
	}
	return &aclLists{}
}

// addReplace stores an ACL under a new index (none) or in place.
func (a *acls) addReplace(index uint32, l *accessList) (uint32, int32) {
	if index == none {
		return a.all.put(l), retOK
	}
	old, ok := a.all.get(index)
	if !ok {
		return index, retNoSuchEntry
	}
	*old = *l
	return index, retOK
}

// del removes an ACL that no interface uses.
func (a *acls) del(index uint32) int32 {
	if _, ok := a.all.get(index); !ok {
		return retNoSuchEntry
	}
	for _, l := range a.lists {
		if slices.Contains(l.in, index) {
			return retACLInUseInbound
		}
	}
	for _, l := range a.lists {
		if slices.Contains(l.out, index) {
			return retACLInUseOutbound
		}
	}
	a.all.remove(index)
	return retOK
}

// set replaces the input or the output list of an interface. It forgets the
// flows of the interface if the lists have other members afterwards.
func (a *acls) set(swIf uint32, input bool, list []uint32) int32 {
	for i, index := range list {
		if _, ok := a.all.get(index); !ok {
			return retNoSuchEntry
		}
		if slices.Contains(list[:i], index) {
			return retEntryAlreadyExists
		}
	}
	l := *a.of(swIf)
	member := &l.out
	if input {
		member = &l.in
	}
	if !sameMembers(*member, list) {
		a.forget(swIf)
	}
	*member = slices.Clone(list)
	a.lists[swIf] = &l
	if len(l.in)+len(l.out) == 0 {
		delete(a.lists, swIf)
	}
	return retOK
}

// setBoth is acl_interface_set_acl_list: the output list first. What the input
// list is refused for is lost on the way, VPP answers 1.
func (a *acls) setBoth(swIf uint32, in, out []uint32) int32 {
	for _, index := range slices.Concat(in, out) {
		if _, ok := a.all.get(index); !ok {
			return retNoSuchEntry
		}
	}
	if a.set(swIf, false, out) != retOK || a.set(swIf, true, in) != retOK {
		return 1
	}
	return retOK
}

// addDel appends an ACL to a list, or takes it out.
func (a *acls) addDel(swIf uint32, input, add bool, index uint32) int32 {
	list, inUse := a.of(swIf).out, retACLInUseOutbound
	if input {
		list, inUse = a.of(swIf).in, retACLInUseInbound
	}
	at := slices.Index(list, index)
	switch {
	case add && at >= 0:
		return inUse
	case add:
		return a.set(swIf, input, append(slices.Clone(list), index))
	case at < 0:
		return retNoSuchEntry
	default:
		return a.set(swIf, input, slices.Delete(slices.Clone(list), at, at+1))
	}
}

// interfaceGone takes the lists from an interface that is deleted.
func (a *acls) interfaceGone(swIf uint32) {
	delete(a.lists, swIf)
	a.forget(swIf)
}

// forget ends the flows of an interface.
func (a *acls) forget(swIf uint32) {
	for f := range a.flows {
		if f.swIf == swIf {
			delete(a.flows, f)
		}
	}
}

// sameMembers compares lists without regard to their order.
func sameMembers(a, b []uint32) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// permits asks the ACLs of a list about a packet. The first rule that matches
// decides, and none is a denial; an empty list is not asked at all.
func (t *transit) permits(swIf uint32, list []uint32) bool {
	if len(list) == 0 {
		return true
	}
	flow := t.aclFlow(swIf)
	if t.acls.flows[flow] {
		return true
	}
	for _, index := range list {
		l, _ := t.acls.all.get(index)
		for _, r := range l.rules {
			if t.matches(&r) {
				if r.action == aclReflect {
					t.acls.flows[flow] = true
				}
				return r.action != aclDeny
			}
		}
	}
	return false
}

// matches reports whether a rule is about the packet. Ports count only with a
// protocol, and are 0 for protocols whose ports VPP does not read.
func (t *transit) matches(r *aclRule) bool {
	if !r.src.Contains(t.Src.Addr()) || !r.dst.Contains(t.Dst.Addr()) {
		return false
	}
	if r.proto == 0 {
		return true
	}
	src, dst := t.aclPorts()
	within := func(port uint16, of [2]uint16) bool { return of[0] <= port && port <= of[1] }
	return r.proto == t.Proto && within(src, r.srcPort) && within(dst, r.dstPort) &&
		(t.Proto != ProtoTCP || t.Flags&r.mask == r.flags)
}

// aclPorts returns what VPP compares with the ports of a rule.
func (t *transit) aclPorts() (src, dst uint16) {
	switch t.Proto {
	case ProtoTCP, ProtoUDP:
		return t.Src.Port(), t.Dst.Port()
	case ProtoICMP:
		if t.EchoReply {
			return 0, 0
		}
		return 8, 0
	default:
		return 0, 0
	}
}

// aclFlow returns the flow of the packet on an interface.
func (t *transit) aclFlow(swIf uint32) aclFlow {
	low, high := t.Src, t.Dst
	if high.Compare(low) < 0 {
		low, high = high, low
	}
	return aclFlow{swIf: swIf, low: low, high: high, proto: t.Proto}
}
