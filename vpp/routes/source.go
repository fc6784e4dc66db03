package routes

import (
	"cmp"
	"slices"

	"go.fd.io/govpp/binapi/fib"
)

// source is the FIB source of a rank. Lower priorities win; doc.go lists those in between.
type source struct {
	name     string
	priority uint8
}

// sourceOf returns the source of a rank. VPP cannot change the priority of a source, so another priority makes another source, and Diff
// moves the routes of the old one.
func sourceOf(r Rank) source {
	if r == Yielding {
		return source{"troupe-yield", 0xd1}
	}
	return source{"troupe", 0xcf}
}

// noSource is no id of a source of ours: in a route, 0 means the source of the API.
const noSource = 0

// sources are our sources in VPP.
type sources struct {
	// current is the source that is used for each rank; a rank that is not registered is absent.
	current map[Rank]uint8
	// all are the ids of the current and of older sources, ordered.
	all []uint8
	// names of all sources of VPP, by id.
	names map[uint8]string
}

// newSources finds our sources among those of VPP: by name, and among several of one name the first with the right priority.
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

// ours reports whether the id is one of our sources.
func (s sources) ours(id uint8) bool { return slices.Contains(s.all, id) }
