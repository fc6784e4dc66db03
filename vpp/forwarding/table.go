// Package forwarding reads VPP's forwarding table: the sources of routes, and the source whose
// entry VPP uses for a prefix. Packages of vpp use it for addresses that other clients of VPP may
// use too. Tables keep to which table routes lead. It changes nothing in VPP, and its callers
// interpret the answers. Functions may be called from any goroutine, and end with their context.
package forwarding

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Sources returns all sources of VPP's FIB (fib_source_dump). The error wraps what the link
// reports: link.ErrUnsupported where this VPP does not have the message.
func Sources(ctx context.Context, c link.Caller) ([]fib.FibSource, error) {
	var all []fib.FibSource
	err := link.Each(ctx, c, &fib.FibSourceDump{}, func(d *fib.FibSourceDetails) { all = append(all, d.Src) })
	if err != nil {
		return nil, fmt.Errorf("read FIB sources: %w", err)
	}
	return all, nil
}

// Winner is the entry that VPP uses for a prefix.
type Winner struct {
	// Prefix of the entry; set when Err is nil.
	Prefix netip.Prefix
	// Source is the id of its source; set when Err is nil.
	Source uint8
	// ICMP says that it answers packets with an ICMP error, or leads to VPP itself without an
	// interface. Only package routes makes the second kind, and may replace it by the first.
	ICMP bool
	// Local says that it leads to VPP itself, as the address of an interface.
	Local bool
	// Err wraps what the link reports; a link.RetvalError where VPP has answered with a code:
	// there is no such entry, for example.
	Err error
}

// Winners looks up exactly the given prefixes in the tables with an ID (ip_route_lookup_v2) and
// returns as many winners, in their order. The error means that no request was sent.
func Winners(ctx context.Context, c link.Caller, table uint32, prefixes []netip.Prefix) ([]Winner, error) {
	return lookUp(ctx, c, table, prefixes, 1)
}

// Covering is Winners in the default tables, for the longest entries that cover the prefixes, or
// are the same.
func Covering(ctx context.Context, c link.Caller, prefixes []netip.Prefix) ([]Winner, error) {
	return lookUp(ctx, c, 0, prefixes, 0)
}

func lookUp(ctx context.Context, c link.Caller, table uint32, prefixes []netip.Prefix, exact uint8) ([]Winner, error) {
	if len(prefixes) == 0 {
		return nil, nil
	}
	requests := make([]api.Message, len(prefixes))
	for i, p := range prefixes {
		requests[i] = &ip.IPRouteLookupV2{TableID: table, Exact: exact, Prefix: Prefix(p)}
	}
	results, err := c.Do(ctx, requests)
	if err != nil {
		return nil, fmt.Errorf("look up routes: %w", err)
	}
	winners := make([]Winner, len(prefixes))
	for i, result := range results {
		reply, ok := result.Reply.(*ip.IPRouteLookupV2Reply)
		switch {
		case result.Err != nil:
			winners[i].Err = fmt.Errorf("look up route %s: %w", prefixes[i], result.Err)
		case !ok:
			winners[i].Err = fmt.Errorf("look up route %s: %w: answered by %T", prefixes[i], link.ErrProtocol, result.Reply)
		default:
			winners[i].Source, winners[i].Prefix = reply.Route.Src, FromPrefix(reply.Route.Prefix)
			winners[i].ICMP = slices.ContainsFunc(reply.Route.Paths, func(p fib_types.FibPath) bool {
				return p.Type == fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH || p.Type == fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT ||
					p.Type == fib_types.FIB_API_PATH_TYPE_LOCAL && p.SwIfIndex == ^uint32(0)
			})
			winners[i].Local = slices.ContainsFunc(reply.Route.Paths, func(p fib_types.FibPath) bool {
				return p.Type == fib_types.FIB_API_PATH_TYPE_LOCAL && p.SwIfIndex != ^uint32(0)
			})
		}
	}
	return winners, nil
}

// FromAddress translates an address of VPP's messages.
func FromAddress(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(a.Un.GetIP6())
	}
	return netip.AddrFrom4(a.Un.GetIP4())
}

// Address translates an address into the form of VPP's messages.
func Address(a netip.Addr) ip_types.Address {
	if a.Is4() {
		return ip_types.Address{Un: ip_types.AddressUnionIP4(a.As4())}
	}
	return ip_types.Address{Af: ip_types.ADDRESS_IP6, Un: ip_types.AddressUnionIP6(a.As16())}
}

// FromPrefix translates a prefix of VPP's messages and masks it.
func FromPrefix(p ip_types.Prefix) netip.Prefix {
	return netip.PrefixFrom(FromAddress(p.Address), int(p.Len)).Masked()
}

// Prefix translates a prefix into the form of VPP's messages.
func Prefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: Address(p.Addr()), Len: uint8(p.Bits())}
}

// Network is a prefix and the table (VRF) of the interface to which the routes of its addresses
// lead.
type Network struct {
	Prefix netip.Prefix
	Table  uint32
}

// Tables say by longest match to the interfaces of which table the routes of addresses lead. It is
// immutable; the zero value says table 0 for every address.
type Tables struct {
	of map[netip.Prefix]uint32
	// lengths of the prefixes, the longest first.
	lengths []int
}

// NewTables collects networks, of equal prefixes the first. It leaves out the ones whose
// surroundings have the same table.
func NewTables(networks []Network) Tables {
	networks = slices.Clone(networks)
	slices.SortStableFunc(networks, func(a, b Network) int { return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()) })
	t, taken := Tables{}, map[netip.Prefix]bool{}
	for _, n := range networks {
		p := n.Prefix.Masked()
		if taken[p] || !p.IsValid() {
			continue
		}
		if taken[p] = true; t.Of(p.Addr()) == n.Table {
			continue
		}
		if t.of == nil {
			t.of = map[netip.Prefix]uint32{}
		}
		if t.of[p] = n.Table; len(t.lengths) == 0 || t.lengths[0] != p.Bits() {
			t.lengths = slices.Insert(t.lengths, 0, p.Bits())
		}
	}
	return t
}

// Of returns the table of an address; 0 for an address outside of all networks.
func (t Tables) Of(addr netip.Addr) uint32 {
	for _, bits := range t.lengths {
		if p, err := addr.Prefix(bits); err == nil {
			if table, found := t.of[p]; found {
				return table
			}
		}
	}
	return 0
}

// Networks returns the networks, ordered by prefix.
func (t Tables) Networks() []Network {
	var all []Network
	for _, p := range slices.SortedFunc(maps.Keys(t.of), netip.Prefix.Compare) {
		all = append(all, Network{p, t.of[p]})
	}
	return all
}

// Equal reports whether both say the same.
func (t Tables) Equal(other Tables) bool { return maps.Equal(t.of, other.of) }
