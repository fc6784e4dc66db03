package routes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Read reads our sources and their routes. For given prefixes without such a route (State.Prefixes)
// it reads whether another source has a better one, and for external addresses whether a route of
// another owner leads there. It looks up no prefixes while VPP has none of our sources. An error
// wraps ErrUnsupported where this VPP has no API for sources, and what the link reports otherwise.
// The dumps are separate requests: a change that another client makes between them may be seen in
// part.
func Read(ctx context.Context, c link.Caller, prefixes, external []netip.Prefix) (*State, error) {
	found, err := readSources(ctx, c)
	if err != nil {
		return nil, err
	}
	state := NewState()
	state.Source = found.current
	if state.Unable, err = Unable(ctx, c); err != nil {
		return nil, err
	}
	for _, id := range found.all {
		if id != state.Source {
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
	if state.Covered, err = readCovered(ctx, c, found, external); err != nil {
		return nil, err
	}
	return state, readBeneath(ctx, c, state, found, prefixes)
}

// readCovered returns the addresses to which a route of another owner leads, except the default
// route, each with the prefix of that route.
func readCovered(ctx context.Context, c link.Caller, found sources, addresses []netip.Prefix) (map[netip.Prefix]netip.Prefix, error) {
	around := make([]netip.Prefix, len(addresses))
	for i, p := range addresses {
		// the address itself may have a route of ours, or one that NAT44 has left behind
		around[i] = netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
	}
	winners, err := forwarding.Covering(ctx, c, around)
	if err != nil {
		return nil, err
	}
	covered := map[netip.Prefix]netip.Prefix{}
	for i, winner := range winners {
		if winner.Err != nil {
			return nil, unsupported(winner.Err)
		}
		if winner.Prefix.Bits() > 0 && !found.ours(winner.Source) {
			covered[addresses[i]] = winner.Prefix
		}
	}
	return covered, nil
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
	err := link.Each(ctx, c, &ip.IPRouteV2Dump{Src: id, Table: ip.IPTable{IsIP6: ip6}}, func(d *ip.IPRouteV2Details) {
		// VPP 25.10 returns only routes that this source wins; the check protects against a
		// version that returns more.
		if d.Route.Src == id {
			state.Routes[Place{forwarding.FromPrefix(d.Route.Prefix), id}] = kindOf(d.Route.Paths)
		}
	})
	if err != nil {
		return unsupported(fmt.Errorf("read routes of FIB source %d: %w", id, err))
	}
	return nil
}

// readBeneath looks up the prefixes without a dumped route of ours (ip_route_lookup_v2, exact): a
// better route may hide ours.
func readBeneath(ctx context.Context, c link.Caller, state *State, found sources, prefixes []netip.Prefix) error {
	seen := make(map[netip.Prefix]bool, len(state.Routes))
	for place := range state.Routes {
		seen[place.Prefix] = true
	}
	prefixes = slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool { return seen[p] || !p.IsValid() })
	winners, err := forwarding.Winners(ctx, c, 0, prefixes)
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
