package model

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// aclAction is what a rule of an access list does.
type aclAction uint8

// Actions of a rule.
const (
	aclDeny aclAction = iota
	aclPermit
	aclReflect // VPP remembers the flow in both directions; the model only permits
)

// aclRule is one rule of an access list: of one address family.
type aclRule struct {
	Action           aclAction
	Src, Dst         netip.Prefix
	Proto            uint8     // 0 = any, and ports do not matter then
	SrcPort, DstPort [2]uint16 // first and last; type and code of ICMP
	Flags, Mask      vnet.TCPFlags
}

// aclList is one ACL.
type aclList struct {
	Tag   string
	Rules []aclRule
}

// aclLists are the ACLs of one interface.
type aclLists struct {
	In, Out []uint32
}

// aclPlugin is the state of the ACL plugin.
type aclPlugin struct {
	All   vnet.Pool[*aclList]
	lists map[uint32]*aclLists
}

// Of returns the lists of an interface, empty ones if it has none.
func (a *aclPlugin) Of(swIf uint32) *aclLists {
	if l := a.lists[swIf]; l != nil {
		return l
	}
	return &aclLists{}
}

// AddReplace stores an ACL under a new index (none) or in place.
func (a *aclPlugin) AddReplace(index uint32, l *aclList) (uint32, int32) {
	if index == vnet.None {
		return a.All.Put(l), vnet.RetOK
	}
	old, ok := a.All.Get(index)
	if !ok {
		return index, vnet.RetNoSuchEntry
	}
	*old = *l
	return index, vnet.RetOK
}

// Del removes an ACL that no interface uses.
func (a *aclPlugin) Del(index uint32) int32 {
	if _, ok := a.All.Get(index); !ok {
		return vnet.RetNoSuchEntry
	}
	for _, l := range a.lists {
		if slices.Contains(l.In, index) {
			return vnet.RetACLInUseInbound
		}
	}
	for _, l := range a.lists {
		if slices.Contains(l.Out, index) {
			return vnet.RetACLInUseOutbound
		}
	}
	a.All.Remove(index)
	return vnet.RetOK
}

// set replaces the input or the output list of an interface.
func (a *aclPlugin) set(swIf uint32, input bool, list []uint32) int32 {
	for i, index := range list {
		if _, ok := a.All.Get(index); !ok {
			return vnet.RetNoSuchEntry
		}
		if slices.Contains(list[:i], index) {
			return vnet.RetEntryAlreadyExists
		}
	}
	l := *a.Of(swIf)
	member := &l.Out
	if input {
		member = &l.In
	}
	*member = slices.Clone(list)
	a.lists[swIf] = &l
	if len(l.In)+len(l.Out) == 0 {
		delete(a.lists, swIf)
	}
	return vnet.RetOK
}

// SetBoth is acl_interface_set_acl_list: the output list first. VPP answers 1 for a refused input
// list, whatever the reason.
func (a *aclPlugin) SetBoth(swIf uint32, in, out []uint32) int32 {
	for _, index := range slices.Concat(in, out) {
		if _, ok := a.All.Get(index); !ok {
			return vnet.RetNoSuchEntry
		}
	}
	if a.set(swIf, false, out) != vnet.RetOK || a.set(swIf, true, in) != vnet.RetOK {
		return 1
	}
	return vnet.RetOK
}

// AddDel appends an ACL to a list, or takes it out.
func (a *aclPlugin) AddDel(swIf uint32, input, add bool, index uint32) int32 {
	list, inUse := a.Of(swIf).Out, vnet.RetACLInUseOutbound
	if input {
		list, inUse = a.Of(swIf).In, vnet.RetACLInUseInbound
	}
	at := slices.Index(list, index)
	switch {
	case add && at >= 0:
		return inUse
	case add:
		return a.set(swIf, input, append(slices.Clone(list), index))
	case at < 0:
		return vnet.RetNoSuchEntry
	default:
		return a.set(swIf, input, slices.Delete(slices.Clone(list), at, at+1))
	}
}

// InterfaceGone takes the lists from an interface that is deleted.
func (a *aclPlugin) InterfaceGone(swIf uint32) {
	delete(a.lists, swIf)
}

// Permits matches a packet against the ACLs of a list. The first rule that matches decides, and no
// match is a denial; an empty list permits everything.
func (a *aclPlugin) Permits(list []uint32, p *vnet.Packet) bool {
	if len(list) == 0 {
		return true
	}
	for _, index := range list {
		l, _ := a.All.Get(index)
		for _, r := range l.Rules {
			if r.matches(p) {
				return r.Action != aclDeny
			}
		}
	}
	return false
}

// matches reports whether a rule is about the packet. Ports count only with a protocol, and are 0
// for protocols whose ports VPP does not read.
func (r *aclRule) matches(p *vnet.Packet) bool {
	if !r.Src.Contains(p.Src.Addr()) || !r.Dst.Contains(p.Dst.Addr()) {
		return false
	}
	if r.Proto == 0 {
		return true
	}
	if p.Fragment { // VPP compares address and protocol
		return r.Proto == p.Proto
	}
	src, dst := portsOf(p)
	within := func(port uint16, of [2]uint16) bool { return of[0] <= port && port <= of[1] }
	return r.Proto == p.Proto && within(src, r.SrcPort) && within(dst, r.DstPort) &&
		(p.Proto != vnet.ProtoTCP || p.Flags&r.Mask == r.Flags)
}

// portsOf returns what VPP compares with the ports of a rule.
func portsOf(p *vnet.Packet) (src, dst uint16) {
	switch p.Proto {
	case vnet.ProtoTCP, vnet.ProtoUDP:
		return p.Src.Port(), p.Dst.Port()
	case vnet.ProtoICMP:
		if p.EchoReply {
			return 0, 0
		}
		return 8, 0
	default:
		return 0, 0
	}
}

// AddressAdded is of no interest to access lists.
func (a *aclPlugin) AddressAdded(*vnet.Interface, netip.Prefix) {}

// AddressDeleted is of no interest to access lists.
func (a *aclPlugin) AddressDeleted(*vnet.Interface, netip.Prefix) {}

// TableBound is of no interest to access lists.
func (a *aclPlugin) TableBound(_, _, _ uint32) {}

// Describe lists the ACLs with their rules.
func (a *aclPlugin) Describe(nameOf func(uint32) string) []string {
	var lines []string
	for index, l := range a.All.All {
		lines = append(lines, fmt.Sprintf("%3d %q %d rules", index, l.Tag, len(l.Rules)))
		for i, r := range l.Rules {
			action := [...]string{"deny", "permit", "permit+reflect"}[min(int(r.Action), int(aclReflect))]
			lines = append(lines, fmt.Sprintf("%3d rule %5d %s %s > %s proto %d ports %d-%d > %d-%d", index, i, action, r.Src, r.Dst, r.Proto,
				r.SrcPort[0], r.SrcPort[1], r.DstPort[0], r.DstPort[1]))
		}
	}
	for swIf, l := range a.lists {
		lines = append(lines, fmt.Sprintf("on %s input %v output %v", nameOf(swIf), l.In, l.Out))
	}
	return lines
}
