package cluster

import (
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// Updates says what changed for those who care about single nodes. It is pure; either state may be nil, which is an empty one.
//
// A node is a member while it has an ID. Between two states:
//
//	peer                                             update
//	not a member before, nor now                     none, whatever else changed
//	a member now, not before                         joined: previous unset
//	a member before, not now                         left: current unset, even if Kubernetes still lists it
//	member both times, anything changed              changed: both set (ID, VPP or management addresses, pod CIDRs, UID)
//	member both times, nothing changed               none
//
//	this node                                        update
//	its management addresses or pod CIDRs changed    changed: both set, whether it has an ID or not; where it was or is unknown, with
//	                                                 nothing but its name
//	anything else                                    none: its ID and its VPP addresses are its own doing, and ClusterState has them
//
// The order is: who left, who changed, who joined, each by name, so that an ID or an address that moved from one node to another is given
// up before it is taken.
func Updates(previous, current *messages.ClusterState) []*messages.NodeUpdate {
	self := or(current.GetSelf(), previous.GetSelf())
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

// selfUpdate applies the rule for this node.
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

func sameNode(a, b *messages.ClusterNode) bool {
	return a == b || a.GetId() == b.GetId() && a.GetUid() == b.GetUid() && slices.Equal(a.GetVppAddresses(), b.GetVppAddresses()) &&
		sameInKubernetes(a, b)
}

func sameInKubernetes(a, b *messages.ClusterNode) bool {
	return sameSet(a.GetManagementAddresses(), b.GetManagementAddresses()) && slices.Equal(a.GetPodCidrs(), b.GetPodCidrs())
}

// sameSet compares addresses that Kubernetes lists in any order.
func sameSet(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}
