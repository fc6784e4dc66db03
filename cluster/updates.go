package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// Updates returns the changes of single nodes between two states. It is pure; nil is an empty
// state.
//
// A node is a member while it has an ID. Between two states:
//
//	peer                                             update
//	not a member before, nor now                     none, whatever else changed
//	a member now, not before                         joined: previous unset
//	a member before, not now                         left: current unset, even if Kubernetes still
//	                                                 lists it
//	member both times, anything changed              changed: both set (ID, VPP or management
//	                                                 addresses, pod CIDRs, UID)
//	member both times, nothing changed               none
//
//	this node                                        update
//	its management addresses or pod CIDRs changed    changed: both set, with or without an ID; an
//	                                                 unknown node has only its name
//	anything else                                    none: this node has set its ID and its VPP
//	                                                 addresses itself
//
// The order is: left, changed, joined, each by name, so that an ID or an address that moves to
// another node is removed before it is added.
func Updates(previous, current *messages.ClusterState) []*messages.NodeUpdate {
	self := cmp.Or(current.GetSelf(), previous.GetSelf())
	var left, changed, joined []*messages.NodeUpdate
	for name, was := range previous.GetNodes() {
		if name != self && was.GetId() != 0 && current.GetNodes()[name].GetId() == 0 {
			left = append(left, &messages.NodeUpdate{Name: name, Previous: was})
		}
	}
	for name, is := range current.GetNodes() {
		was := previous.GetNodes()[name]
		switch {
		case name == self || is.GetId() == 0:
		case was.GetId() == 0:
			joined = append(joined, &messages.NodeUpdate{Name: name, Current: is})
		case !sameNode(was, is):
			changed = append(changed, &messages.NodeUpdate{Name: name, Previous: was, Current: is})
		}
	}
	if u := selfUpdate(self, previous, current); u != nil {
		changed = append(changed, u)
	}
	for _, list := range [][]*messages.NodeUpdate{left, changed, joined} {
		slices.SortFunc(list, func(a, b *messages.NodeUpdate) int { return strings.Compare(a.GetName(), b.GetName()) })
	}
	return slices.Concat(left, changed, joined)
}

// selfUpdate returns the update of this node, nil if there is none.
func selfUpdate(self string, previous, current *messages.ClusterState) *messages.NodeUpdate {
	was, is := previous.GetNodes()[self], current.GetNodes()[self]
	if self == "" || sameInKubernetes(was, is) {
		return nil
	}
	if was == nil {
		was = &messages.ClusterNode{Name: self}
	}
	if is == nil {
		is = &messages.ClusterNode{Name: self}
	}
	return &messages.NodeUpdate{Name: self, Previous: was, Current: is}
}

// sameNode compares everything that users of Updates see.
func sameNode(a, b *messages.ClusterNode) bool {
	return a == b || a.GetId() == b.GetId() && a.GetUid() == b.GetUid() && slices.Equal(a.GetVppAddresses(), b.GetVppAddresses()) &&
		sameInKubernetes(a, b)
}

func sameInKubernetes(a, b *messages.ClusterNode) bool {
	return sameSet(a.GetManagementAddresses(), b.GetManagementAddresses()) && slices.Equal(a.GetPodCidrs(), b.GetPodCidrs())
}

// sameSet compares addresses regardless of their order, which Kubernetes does not define.
func sameSet(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}
