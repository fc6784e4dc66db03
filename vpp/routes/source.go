package routes

import (
	"cmp"
	"slices"

	"go.fd.io/govpp/binapi/fib"
)

// source is what a rank is registered as. Lower priorities win; doc.go says what lies between.
type source struct {
	name     string
	priority uint8
}

// sourceOf returns the source of a rank. A name and a priority belong together for ever: VPP has no way to change the priority of a
// source, so another priority makes another source, and what the old one holds is moved.
func sourceOf(r Rank) source {
	if r == Yielding {
		return source{"troupe-yield", 0xd1}
	}
	return source{"troupe", 0xcf}
}

// noSource is not the id of a source; in a route it would mean the API's.
const noSource = 0

// sources are the sources of ours that VPP knows.
type sources struct {
	// current is the source that is used for each rank; a rank that is not registered is not in it.
	current map[Rank]uint8
	// all are the ids of the current and of older sources, ordered.
	all []uint8
	// names of all sources of VPP, by id.
	names map[uint8]string
}

// newSources finds ours among all sources of VPP: by name, and among several the first with the right priority.
func newSources(all []fib.FibSource) sources {
	s := sources{current: map[Rank]uint8{}, names: make(map[uint8]string, len(all))}
	slices.SortFunc(all, func(a, b fib.FibSource) int { return cmp.Compare(a.ID, b.ID) })
	for _, known := range all {
		s.names[known.ID] = known.Name
		for _, rank := range ranks {
			ours := sourceOf(rank)
			if known.ID == noSource || known.Name != ours.name {
				continue
			}
			s.all = append(s.all, known.ID)
			if s.current[rank] == noSource && known.Priority == ours.priority {
				s.current[rank] = known.ID
			}
		}
	}
	return s
}

// ours reports whether the id is that of a source of ours.
func (s sources) ours(id uint8) bool { return slices.Contains(s.all, id) }
