package routes

import (
	"cmp"
	"slices"

	"go.fd.io/govpp/binapi/fib"
)

// Our source. Lower priorities win; doc.go lists those around it. VPP cannot change the priority of
// a source, so another priority makes another source, and Diff moves the routes of the old one.
const (
	sourceName     = "troupe"
	sourcePriority = 0xcf
)

// noSource is no id of a source of ours: in a route, 0 means the source of the API.
const noSource = 0

// sources are our sources in VPP.
type sources struct {
	// current is the source that is used; noSource where it is not registered.
	current uint8
	// all are the ids of the current and of older sources, ordered.
	all []uint8
	// names of all sources of VPP, by id.
	names map[uint8]string
}

// newSources finds our sources among the sources of VPP: by name, and among several of one name the
// first with the right priority.
func newSources(all []fib.FibSource) sources {
	s := sources{names: make(map[uint8]string, len(all))}
	slices.SortFunc(all, func(a, b fib.FibSource) int { return cmp.Compare(a.ID, b.ID) })
	for _, known := range all {
		s.names[known.ID] = known.Name
		if known.ID == noSource || known.Name != sourceName {
			continue
		}
		s.all = append(s.all, known.ID)
		if s.current == noSource && known.Name == sourceName && known.Priority == sourcePriority {
			s.current = known.ID
		}
	}
	return s
}

// ours reports whether the id is one of our sources.
func (s sources) ours(id uint8) bool { return slices.Contains(s.all, id) }
