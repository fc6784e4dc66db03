package routes

import (
	"cmp"
	"net/netip"
	"slices"
)

// Diff returns the least operations that turn our sources and routes in VPP into the wanted ones: sources, then routes that are missing or
// different, ordered by prefix, then what is not needed any more. Unwanted routes are deleted only when sweep is true, that is when every
// service has rendered; a route that is wanted under another source is moved in any case. Equal arguments give equal results; a state that
// is as wanted gives none.
func Diff(have *State, want Want, sweep bool) []Op {
	changed, needed := missing(have, want)
	var ops []Op
	for _, rank := range ranks {
		if needed[rank] {
			ops = append(ops, Op{Verb: Register, Rank: rank})
		}
	}
	for _, prefix := range changed {
		route := want[prefix]
		ops = append(ops, Op{Verb: Add, Rank: route.Rank, Source: have.Sources[route.Rank], Prefix: prefix, Kind: route.Kind})
	}
	for _, place := range unwanted(have, want, sweep) {
		ops = append(ops, Op{Verb: Delete, Source: place.Source, Prefix: place.Prefix})
	}
	return ops
}

// missing returns, in order, the prefixes whose route is missing or differs, and the ranks that have to be registered for them.
func missing(have *State, want Want) (changed []netip.Prefix, needed map[Rank]bool) {
	needed = map[Rank]bool{}
	for prefix, route := range want {
		id, registered := have.Sources[route.Rank]
		if registered && have.Routes[Place{prefix, id}] == route.Kind {
			continue
		}
		changed = append(changed, prefix)
		if !registered {
			needed[route.Rank] = true
		}
	}
	slices.SortFunc(changed, comparePrefix)
	return changed, needed
}

// unwanted returns the routes to delete, ordered.
func unwanted(have *State, want Want, sweep bool) []Place {
	var gone []Place
	for place := range have.Routes {
		route, wanted := want[place.Prefix]
		if wanted && have.Sources[route.Rank] != place.Source || !wanted && sweep {
			gone = append(gone, place)
		}
	}
	slices.SortFunc(gone, func(a, b Place) int {
		return cmp.Or(comparePrefix(a.Prefix, b.Prefix), cmp.Compare(a.Source, b.Source))
	})
	return gone
}
