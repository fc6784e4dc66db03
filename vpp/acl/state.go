package acl

import (
	"slices"
)

// none is ~0, which VPP takes as "create" in acl_add_replace and as "all" in dumps.
const none = ^uint32(0)

// ACL is one access list in VPP with our tag.
type ACL struct {
	// Index is VPP's acl_index.
	Index uint32
	// Tag is DenyTag of a class, or PermitTag.
	Tag string
	// Rules of a deny ACL, minimal, with the class of the tag; nil for the permitting ACL.
	// Immutable once handed out.
	Rules []Rule

	// odd is set by Read where VPP holds something that this package never writes under the
	// tag. Diff always replaces such an ACL.
	odd bool
}

// Lists are the ACLs of one interface by index, in the order in which VPP matches them: the first
// rule that matches decides, and if none does the packet is dropped. An interface without ACLs
// drops nothing. Immutable once handed out.
type Lists struct {
	// Input are matched before NAT sees the packet.
	Input []uint32
	// Output are matched when the packet leaves. This package never changes them.
	Output []uint32
}

// equal reports whether both are the same lists.
func (l Lists) equal(other Lists) bool {
	return slices.Equal(l.Input, other.Input) && slices.Equal(l.Output, other.Output)
}

// State is what VPP holds: as Read returns it, updated by Record until the next read. It belongs to
// one goroutine.
type State struct {
	// ACLs are ours, by tag. Of several with the same tag this is the one with the smallest
	// index.
	ACLs map[string]ACL
	// Spare are our further ACLs by index: duplicates, and ACLs of other versions of the agent.
	Spare map[uint32]ACL
	// Lists by sw_if_index; interfaces without ACLs are absent.
	Lists map[uint32]Lists
}

// NewState returns the state of a VPP without ACLs.
func NewState() *State {
	return &State{ACLs: map[string]ACL{}, Spare: map[uint32]ACL{}, Lists: map[uint32]Lists{}}
}

// TagOf returns the tag of one of our ACLs by its index, and whether it is ours.
func (s *State) TagOf(index uint32) (string, bool) {
	for tag, a := range s.ACLs {
		if a.Index == index {
			return tag, true
		}
	}
	spare, found := s.Spare[index]
	return spare.Tag, found
}

// Attached returns the number of interfaces with one of our ACLs on input.
func (s *State) Attached() (n int) {
	for _, lists := range s.Lists {
		if slices.ContainsFunc(lists.Input, func(index uint32) bool { _, ours := s.TagOf(index); return ours }) {
			n++
		}
	}
	return n
}

// others returns the ACLs of a list that belong to other owners, in its order.
func (s *State) others(list []uint32) []uint32 {
	var others []uint32
	for _, index := range list {
		if _, ours := s.TagOf(index); !ours {
			others = append(others, index)
		}
	}
	return others
}

// Record enters an operation that VPP has carried out, as OpResult.Op returns it, so that the next
// Diff needs no new read. Operations with an error, or with an unknown outcome, must not be
// recorded: read instead.
func (s *State) Record(op Op) {
	switch op.Verb {
	case Create, Replace:
		s.ACLs[op.Tag] = ACL{Index: op.Index, Tag: op.Tag, Rules: op.Rules}
	case SetLists:
		lists := Lists{Input: indices(op.Input), Output: op.Was.Output}
		if len(lists.Input)+len(lists.Output) == 0 {
			delete(s.Lists, op.Interface)
		} else {
			s.Lists[op.Interface] = lists
		}
	case Delete:
		if s.ACLs[op.Tag].Index == op.Index {
			delete(s.ACLs, op.Tag)
		}
		delete(s.Spare, op.Index)
	}
}
