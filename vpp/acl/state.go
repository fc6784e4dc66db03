package acl

import (
	"maps"
	"slices"
)

// none is ~0, the index that stands for "make a new one" and "all".
const none = ^uint32(0)

// ACL is one access list of ours in VPP.
type ACL struct {
	// Index is VPP's acl_index.
	Index uint32
	// Tag is DenyTag of a class, or PermitTag.
	Tag string
	// Rules of a deny ACL, minimal, their class that of the tag; nil for the permitting one. Immutable once handed out.
	Rules []Rule

	// odd is set by Read where VPP holds something that we would not have written under this tag. Such an ACL is always replaced.
	odd bool
}

// Lists are the ACLs of one interface by index, in the order in which VPP asks them: the first rule that matches decides, and if none
// does the packet is dropped. An interface without ACLs drops nothing. Immutable once handed out.
type Lists struct {
	// Input are asked before NAT sees the packet.
	Input []uint32
	// Output are asked when the packet leaves. They are never changed here.
	Output []uint32
}

// equal reports whether both are the same lists.
func (l Lists) equal(other Lists) bool {
	return slices.Equal(l.Input, other.Input) && slices.Equal(l.Output, other.Output)
}

// empty reports whether no ACL is on the interface.
func (l Lists) empty() bool { return len(l.Input)+len(l.Output) == 0 }

// State is what VPP holds, as it was read and, between two reads, as Record keeps it. It belongs to one goroutine.
type State struct {
	// ACLs of ours by tag. Of several with one tag this is the one with the smallest index.
	ACLs map[string]ACL
	// Spare are further ACLs of ours by index: doubles, and those of other versions of the agent.
	Spare map[uint32]ACL
	// Lists by sw_if_index; interfaces without ACLs are not in it.
	Lists map[uint32]Lists
}

// NewState returns the state of a VPP without ACLs.
func NewState() *State {
	return &State{ACLs: map[string]ACL{}, Spare: map[uint32]ACL{}, Lists: map[uint32]Lists{}}
}

// Clone returns a copy that shares nothing but what is immutable.
func (s *State) Clone() *State {
	return &State{ACLs: maps.Clone(s.ACLs), Spare: maps.Clone(s.Spare), Lists: maps.Clone(s.Lists)}
}

// TagOf returns the tag of an ACL of ours by its index, and whether it is ours.
func (s *State) TagOf(index uint32) (string, bool) {
	for tag, a := range s.ACLs {
		if a.Index == index {
			return tag, true
		}
	}
	spare, found := s.Spare[index]
	return spare.Tag, found
}

// Rules returns the number of rules in VPP, of all ACLs of ours.
func (s *State) Rules() (n int) {
	for _, a := range s.ACLs {
		n += len(a.Rules)
	}
	return n
}

// Attached returns the number of interfaces with an ACL of ours on input.
func (s *State) Attached() (n int) {
	for _, lists := range s.Lists {
		if slices.ContainsFunc(lists.Input, func(index uint32) bool { _, ours := s.TagOf(index); return ours }) {
			n++
		}
	}
	return n
}

// others returns what of a list is not ours, in its order.
func (s *State) others(list []uint32) []uint32 {
	var others []uint32
	for _, index := range list {
		if _, ours := s.TagOf(index); !ours {
			others = append(others, index)
		}
	}
	return others
}

// Record enters an operation that VPP has carried out, as OpResult.Op returns it, so that the next Diff need not read VPP again.
// Operations with an error, or whose outcome is unknown, must not be recorded: read instead.
func (s *State) Record(op Op) {
	switch op.Verb {
	case Create, Replace:
		s.ACLs[op.Tag] = ACL{Index: op.Index, Tag: op.Tag, Rules: op.Rules}
	case SetLists:
		lists := Lists{Input: indices(op.Input), Output: op.Was.Output}
		if lists.empty() {
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
