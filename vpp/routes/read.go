package routes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Read reads what VPP holds of us: our sources, their routes, and, for those of the given prefixes (State.Prefixes) that are not among
// them, whether somebody else has a better route. Nothing is asked about prefixes while VPP does not know us. An error wraps ErrUnsupported
// where this VPP cannot have sources, and what the link reports otherwise. The dumps are separate requests: what somebody else changes
// between them may be seen in part.
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
	var all []fib.FibSource
	err := c.Dump(ctx, &fib.FibSourceDump{}, func(msg api.Message) {
		if d, ok := msg.(*fib.FibSourceDetails); ok {
			all = append(all, d.Src)
		}
	})
	if err != nil {
		return sources{}, unsupported(fmt.Errorf("read FIB sources: %w", err))
	}
	return newSources(all), nil
}

// readRoutes reads the routes of one source in one default table (ip_route_v2_dump).
func readRoutes(ctx context.Context, c link.Caller, state *State, id uint8, ip6 bool) error {
	err := c.Dump(ctx, &ip.IPRouteV2Dump{Src: id, Table: ip.IPTable{IsIP6: ip6}}, func(msg api.Message) {
		// VPP returns what this source wins; the check is for one that should return more.
		if d, ok := msg.(*ip.IPRouteV2Details); ok && d.Route.Src == id {
			state.Routes[Place{prefixOf(d.Route.Prefix), id}] = kindOf(d.Route.Paths)
		}
	})
	if err != nil {
		return unsupported(fmt.Errorf("read routes of FIB source %d: %w", id, err))
	}
	return nil
}

// readBeneath looks up the prefixes that no route of ours was returned for (ip_route_lookup_v2, exact).
func readBeneath(ctx context.Context, c link.Caller, state *State, found sources, prefixes []netip.Prefix) error {
	seen := make(map[netip.Prefix]bool, len(state.Routes))
	for place := range state.Routes {
		seen[place.Prefix] = true
	}
	prefixes = slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool { return seen[p] || !p.IsValid() })
	if len(prefixes) == 0 {
		return nil
	}
	requests := make([]api.Message, len(prefixes))
	for i, p := range prefixes {
		requests[i] = &ip.IPRouteLookupV2{Exact: 1, Prefix: wirePrefix(p)}
	}
	results, err := c.Do(ctx, requests)
	if err != nil {
		return fmt.Errorf("look up routes: %w", err)
	}
	for i, result := range results {
		if retval, answered := link.Retval(result.Err); answered && retval == retNoSuchEntry {
			continue
		}
		if result.Err != nil {
			return unsupported(fmt.Errorf("look up route %s: %w", prefixes[i], result.Err))
		}
		reply, ok := result.Reply.(*ip.IPRouteLookupV2Reply)
		if !ok {
			return fmt.Errorf("look up route %s: %w: answered by %T", prefixes[i], link.ErrProtocol, result.Reply)
		}
		if !found.ours(reply.Route.Src) {
			state.Beneath[prefixes[i]] = found.names[reply.Route.Src]
		}
	}
	return nil
}

// unsupported makes what the link says about messages that VPP does not know ErrUnsupported.
func unsupported(err error) error {
	if errors.Is(err, link.ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
