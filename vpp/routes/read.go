package routes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Read reads our sources, their routes, and, for those of the given prefixes (State.Prefixes) that are not among them, whether another
// source has a better route. It looks up no prefixes while VPP has none of our sources. An error wraps ErrUnsupported where this VPP has no
// API for sources, and what the link reports otherwise. The dumps are separate requests: a change that another client makes between them
// may be seen in part.
func Read(ctx context.Context, c link.Caller, prefixes ...netip.Prefix) (*State, error) {
	found, err := readSources(ctx, c)
	if err != nil {
		return nil, err
	}
	state := NewState()
	state.Sources = found.current
	for _, id := range found.all {
		if !state.knows(id) {
			state.Older = append(state.Older, id)
		}
		for _, ip6 := range [...]bool{false, true} {
			if err := readRoutes(ctx, c, state, id, ip6); err != nil {
				return nil, err
			}
		}
	}
	if len(found.all) == 0 {
		return state, nil
	}
	return state, readBeneath(ctx, c, state, found, prefixes)
}

// readSources reads the sources of VPP (fib_source_dump).
func readSources(ctx context.Context, c link.Caller) (sources, error) {
	all, err := forwarding.Sources(ctx, c)
	if err != nil {
		return sources{}, unsupported(err)
	}
	return newSources(all), nil
}

// readRoutes reads the routes of one source in one default table (ip_route_v2_dump).
func readRoutes(ctx context.Context, c link.Caller, state *State, id uint8, ip6 bool) error {
	err := c.Dump(ctx, &ip.IPRouteV2Dump{Src: id, Table: ip.IPTable{IsIP6: ip6}}, func(msg api.Message) {
		// VPP 25.10 returns only routes that this source wins; the check protects against a version that returns more.
		if d, ok := msg.(*ip.IPRouteV2Details); ok && d.Route.Src == id {
			state.Routes[Place{prefixOf(d.Route.Prefix), id}] = kindOf(d.Route.Paths)
		}
	})
	if err != nil {
		return unsupported(fmt.Errorf("read routes of FIB source %d: %w", id, err))
	}
	return nil
}

// readBeneath looks up the prefixes without a dumped route of ours (ip_route_lookup_v2, exact): a better route may hide ours.
func readBeneath(ctx context.Context, c link.Caller, state *State, found sources, prefixes []netip.Prefix) error {
	seen := make(map[netip.Prefix]bool, len(state.Routes))
	for place := range state.Routes {
		seen[place.Prefix] = true
	}
	prefixes = slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool { return seen[p] || !p.IsValid() })
	winners, err := forwarding.Winners(ctx, c, prefixes)
	if err != nil {
		return err
	}
	for i, winner := range winners {
		if retval, answered := link.Retval(winner.Err); answered && retval == retNoSuchEntry {
			continue
		}
		if winner.Err != nil {
			return unsupported(winner.Err)
		}
		if !found.ours(winner.Source) {
			state.Beneath[prefixes[i]] = found.names[winner.Source]
		}
	}
	return nil
}

// unsupported turns the error of the link for a message that VPP does not know into ErrUnsupported.
func unsupported(err error) error {
	if errors.Is(err, link.ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
