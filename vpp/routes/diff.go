package routes

import (
	"cmp"
	"net/netip"
	"slices"
)

// Diff returns the least operations that turn our source and routes in VPP into the wanted ones:
// the source, then routes that are missing or different, ordered by prefix, then what is not needed
// any more. Unwanted routes are deleted only when sweep is true, that is when every service has
// rendered; a route that is wanted under another source is moved in any case. Equal arguments give
// equal results; a state that is as wanted gives none.
func Diff(have *State, want Want, sweep bool) []Op {
	changed := missing(have, want)
	var ops []Op
	if len(changed) > 0 && have.Source == noSource {
		ops = append(ops, Op{Verb: Register})
	}
	for _, prefix := range changed {
		ops = append(ops, Op{Verb: Add, Source: have.Source, Prefix: prefix, Route: want[prefix]})
	}
	for _, place := range unwanted(have, want, sweep) {
		ops = append(ops, Op{Verb: Delete, Source: place.Source, Prefix: place.Prefix})
	}
	return ops
}

// missing returns, in order, the prefixes whose route is missing or differs.
func missing(have *State, want Want) (changed []netip.Prefix) {
	for prefix, route := range want {
		if have.Source == noSource || have.Routes[Place{prefix, have.Source}] != route.Kind {
			changed = append(changed, prefix)
		}
	}
	slices.SortFunc(changed, comparePrefix)
	return changed
}

// unwanted returns the routes to delete, ordered.
func unwanted(have *State, want Want, sweep bool) []Place {
	var gone []Place
	for place := range have.Routes {
		if _, wanted := want[place.Prefix]; wanted && have.Source != place.Source || !wanted && sweep {
			gone = append(gone, place)
		}
	}
	slices.SortFunc(gone, func(a, b Place) int {
		return cmp.Or(comparePrefix(a.Prefix, b.Prefix), cmp.Compare(a.Source, b.Source))
	})
	return gone
}
