package routes

import (
	"maps"
	"net/netip"
	"slices"
)

// Place is where a route of ours is: VPP keeps what every source says about a prefix.
type Place struct {
	// Prefix is masked.
	Prefix netip.Prefix
	// Source is the id of a source of ours; its meaning ends with VPP.
	Source uint8
}

// State is what VPP holds of us, as it was read and, between two reads, as Record keeps it. It is about one start of VPP and belongs to
// one goroutine.
type State struct {
	// Sources are the ids of our sources; ranks that are not registered are not in it.
	Sources map[Rank]uint8
	// Older are the ids of other sources of ours, ordered: what they hold is moved.
	Older []uint8
	// Routes are ours, those of older sources of ours included. The kind is 0 for a path that no route of ours has.
	Routes map[Place]Kind
	// Beneath are prefixes for which somebody else has a better route, with the name of its source. Of these VPP tells nothing about
	// ours: see Inherit. Only prefixes that Read was asked about are in it.
	Beneath map[netip.Prefix]string
}

// NewState returns the state of a VPP that does not know us.
func NewState() *State {
	return &State{Sources: map[Rank]uint8{}, Routes: map[Place]Kind{}, Beneath: map[netip.Prefix]string{}}
}

// Clone returns a copy that shares nothing.
func (s *State) Clone() *State {
	return &State{Sources: maps.Clone(s.Sources), Older: slices.Clone(s.Older), Routes: maps.Clone(s.Routes), Beneath: maps.Clone(s.Beneath)}
}

// Prefixes returns what the next Read should ask about: everything wanted and everything that is held. A nil State holds nothing.
func (s *State) Prefixes(want Want) []netip.Prefix {
	all := slices.AppendSeq(make([]netip.Prefix, 0, len(want)), maps.Keys(want))
	if s == nil {
		return all
	}
	for place := range s.Routes {
		if _, wanted := want[place.Prefix]; !wanted {
			all = append(all, place.Prefix)
		}
	}
	return all
}

// Only returns a state that knows of these prefixes only, so that Diff can be asked about them at a price that does not depend on how many
// others there are. Sources are shared with s, and nothing may be recorded in it.
func (s *State) Only(prefixes ...netip.Prefix) *State {
	part := &State{Sources: s.Sources, Older: s.Older, Routes: make(map[Place]Kind, len(prefixes))}
	for _, prefix := range prefixes {
		for _, id := range s.Sources {
			part.copy(s, Place{prefix, id})
		}
		for _, id := range s.Older {
			part.copy(s, Place{prefix, id})
		}
	}
	return part
}

// copy enters what another state knows of a place.
func (s *State) copy(from *State, place Place) {
	if kind, held := from.Routes[place]; held {
		s.Routes[place] = kind
	}
}

// Inherit takes over from the state before, which must be of the same start of VPP, what a read cannot tell: the routes of ours beneath
// better ones of others. Without it Diff adds them once more after every read. A nil State is ignored.
func (s *State) Inherit(before *State) {
	if before == nil {
		return
	}
	for place, kind := range before.Routes {
		_, seen := s.Routes[place]
		if _, beneath := s.Beneath[place.Prefix]; beneath && !seen && s.knows(place.Source) {
			s.Routes[place] = kind
		}
	}
}

// knows reports whether an id is still that of a current source.
func (s *State) knows(id uint8) bool {
	for _, current := range s.Sources {
		if current == id {
			return true
		}
	}
	return false
}

// Record enters an operation that VPP has carried out, so that the next Diff need not read VPP again: the operation as Apply returns it, with
// the source that it has found. Operations with an error, or whose outcome is unknown, must not be recorded: read instead.
func (s *State) Record(op Op) {
	switch op.Verb {
	case Register:
		s.Sources[op.Rank] = op.Source
	case Add:
		s.Routes[Place{op.Prefix, op.Source}] = op.Kind
	case Delete:
		delete(s.Routes, Place{op.Prefix, op.Source})
	}
}
