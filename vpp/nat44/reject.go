package nat44

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Why what Kubernetes asks for is not exactly what an unreachable route does.
const (
	whyUnreachable = "VPP answers with ICMP host unreachable: TCP clients fail at once, UDP clients only time out"
	whyDropRoute   = "the unreachable route of the service network answers for every port without a row"
)

// rejects reports whether an unreachable route answers for the address. NAT runs before the lookup, so the route never touches a packet that
// has a row.
func (c Config) rejects(addr netip.Addr) bool {
	return slices.ContainsFunc(c.Reject, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// refused enters a frontend whose clients should be refused or ignored and that has no row.
func (p *planner) refused(key Key, action messages.Action) {
	routed := p.cfg.rejects(key.Addr)
	switch {
	case action == messages.Action_ACTION_REJECT && routed:
		p.plan.Rejects = append(p.plan.Rejects, key)
		p.approximate("reject: connection refused", "reject: host unreachable", whyUnreachable)
	case action == messages.Action_ACTION_REJECT:
		p.plan.Rejects = append(p.plan.Rejects, key)
		p.approximate("reject: connection refused", noRow, whyReject)
	case p.cfg.Guarded:
		p.plan.Drops = append(p.plan.Drops, key)
	case routed:
		p.plan.Drops = append(p.plan.Drops, key)
		p.approximate("drop", "reject: host unreachable", whyDropRoute)
	default:
		p.plan.Drops = append(p.plan.Drops, key)
		p.approximate("drop", noRow, whyDrop)
	}
}

// addRejects returns the unreachable routes that are missing. A prefix that leads somewhere else is left alone: somebody wants it so.
func addRejects(have *State, want *Want) []Op {
	var ops []Op
	for _, prefix := range want.Reject {
		if _, known := have.Reject[prefix]; !known {
			ops = append(ops, Op{Verb: AddReject, Prefix: prefix})
		}
	}
	return ops
}

// rejectMessage adds an unreachable route (ip_route_add_del, path type ICMP_UNREACH) to table 0. Adding it again changes nothing.
func rejectMessage(prefix netip.Prefix) api.Message {
	return &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: wirePrefix(prefix), NPaths: 1, Paths: []fib_types.FibPath{{
		SwIfIndex: ^uint32(0), Type: fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, Proto: fib_types.FIB_API_PATH_NH_PROTO_IP4, Weight: 1,
	}}}}
}

func wirePrefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{
		Address: ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(ip4(p.Masked().Addr()))}, Len: uint8(p.Bits()),
	}
}

// readRejects looks up the exact routes of the prefixes that should be unreachable (ip_route_lookup).
func readRejects(ctx context.Context, c link.Caller, state *State, prefixes []netip.Prefix) error {
	if len(prefixes) == 0 {
		return nil
	}
	requests := make([]api.Message, len(prefixes))
	for i, p := range prefixes {
		requests[i] = &ip.IPRouteLookup{Exact: 1, Prefix: wirePrefix(p)}
	}
	results, err := c.Do(ctx, requests)
	if err != nil {
		return fmt.Errorf("read unreachable routes: %w", err)
	}
	for i, result := range results {
		if retval, answered := link.Retval(result.Err); answered && retval == retNoSuchEntry {
			continue
		}
		if result.Err != nil {
			return fmt.Errorf("read route %s: %w", prefixes[i], result.Err)
		}
		reply, ok := result.Reply.(*ip.IPRouteLookupReply)
		if !ok {
			return fmt.Errorf("read route %s: %w: answered by %T", prefixes[i], link.ErrProtocol, result.Reply)
		}
		paths := reply.Route.Paths
		state.Reject[prefixes[i]] = len(paths) == 1 && paths[0].Type == fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH
	}
	return nil
}
