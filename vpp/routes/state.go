package routes

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Place identifies one of our routes: VPP keeps an entry per source for each prefix.
type Place struct {
	// Prefix is masked.
	Prefix netip.Prefix
	// Source is the id of our source; it is valid until VPP restarts.
	Source uint8
}

// State is what VPP holds of our sources: as Read returns it, updated by Record until the next
// read. It is valid for one start of VPP and belongs to one goroutine.
type State struct {
	// Source is the id of our source; 0 = it is not registered.
	Source uint8
	// Older are the ids of our other sources, ordered: Diff moves their routes.
	Older []uint8
	// Routes are our routes, also of our older sources. The kind is 0 for a path that no route
	// of ours has.
	Routes map[Place]Kind
	// Beneath are prefixes for which another source has a better route, with its name. VPP does
	// not return our routes for them: see Inherit. Only prefixes that were passed to Read are
	// in it.
	Beneath map[netip.Prefix]string
	// Covered are external addresses to which a route of another owner leads besides the
	// default route, with its prefix: they get no route. It holds only addresses that were
	// passed to Read or found by Apply.
	Covered map[netip.Prefix]netip.Prefix
	// Unable says why VPP does not refuse packets to its own addresses, so that Reject has to do;
	// "" = it refuses them.
	Unable string
}

// NotRead is the State.Unable of a VPP that was not read.
const NotRead = "VPP was not read"

// NewState returns the state of a VPP without our sources.
func NewState() *State {
	return &State{Routes: map[Place]Kind{}, Beneath: map[netip.Prefix]string{}, Covered: map[netip.Prefix]netip.Prefix{}, Unable: NotRead}
}

// Prefixes returns the prefixes for the next Read: all wanted ones and all that are held. A nil
// State holds none.
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

// Only returns a state with these prefixes only, so that the cost of Diff does not depend on the
// number of all prefixes. It shares the sources with s, and nothing may be recorded in it.
func (s *State) Only(prefixes ...netip.Prefix) *State {
	part := &State{Source: s.Source, Older: s.Older, Routes: make(map[Place]Kind, len(prefixes))}
	for _, prefix := range prefixes {
		for _, id := range append(slices.Clip(s.Older), s.Source) {
			if kind, held := s.Routes[Place{prefix, id}]; held {
				part.Routes[Place{prefix, id}] = kind
			}
		}
	}
	return part
}

// Inherit copies from the state before, which must be of the same start of VPP, what a read does
// not return: our routes that a better one hides. Without it Diff adds them once more after every
// read. A nil State is ignored.
func (s *State) Inherit(before *State) {
	if before == nil {
		return
	}
	for place, kind := range before.Routes {
		_, seen := s.Routes[place]
		if _, beneath := s.Beneath[place.Prefix]; beneath && !seen && place.Source == s.Source {
			s.Routes[place] = kind
		}
	}
}

// Record enters an operation that VPP has carried out, so that the next Diff needs no new read: the
// operation as Apply returns it, with the source that it has found. Operations with an error, or
// with an unknown outcome, must not be recorded: read instead.
func (s *State) Record(op Op) {
	switch op.Verb {
	case Register:
		s.Source = op.Source
	case Add:
		s.Routes[Place{op.Prefix, op.Source}] = op.Kind
	case Delete:
		delete(s.Routes, Place{op.Prefix, op.Source})
	}
}

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
	slices.SortFunc(changed, netip.Prefix.Compare)
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
		return cmp.Or(netip.Prefix.Compare(a.Prefix, b.Prefix), cmp.Compare(a.Source, b.Source))
	})
	return gone
}

// Resolve returns the route that a prefix should have, and whether it has any, from the claims of
// the services: the strongest claim counts (Stance), and on a cluster IP only the claim of its
// service. It is pure.
func Resolve(prefix netip.Prefix, claims []Claim, ground rule.Ground) (Route, bool) {
	all := Claim{External: true}
	for _, claim := range claims {
		all = all.merge(claim)
	}
	route := Route{External: all.External}
	switch {
	case all.Stance == Network:
		return Route{Kind: Reject}, true
	case ground.Hosts[prefix.Addr()], all.External && !ground.Routable(prefix.Addr()):
		return Route{}, false
	case all.Stance == Spare, all.Stance == Refuse:
		route.Kind = Reject
	case all.Stance == Ignore:
		route.Kind = Drop
	default:
		return Route{}, false
	}
	return route, true
}

// Networks returns the claims on networks that are refused as a whole, the service CIDRs. Networks
// of all addresses (/0) and invalid ones are left out, so that a slip does not cost the node its
// network.
func Networks(networks []netip.Prefix) map[netip.Prefix]Claim {
	claims := make(map[netip.Prefix]Claim, len(networks))
	for _, p := range networks {
		if p = p.Masked(); checkPrefix(p) == "" {
			claims[p] = Claim{Addr: p.Addr(), Stance: Network}
		}
	}
	return claims
}

// Prefix is the prefix of the address that the claim is about.
func (c Claim) Prefix() netip.Prefix { return host(c.Addr) }
