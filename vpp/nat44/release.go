package nat44

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

// Names of sources of VPP's FIB.
const (
	// natSource is NAT44's: what it makes an address of VPP.
	natSource = "nat-low"
	// interfaceSource is that of addresses of interfaces, which are VPP's own whatever NAT44 says.
	interfaceSource = "interface"
)

// hostBits is the length of the prefix of one IPv4 address.
const hostBits = 32

// Release marks those deletions of rows in a batch with which an address of VPP may be left behind that nobody needs (Op.Release). Not those of
// fresh rows, nor of rows that are added again. Somebody else's mapping, or an address of the SNAT pool, may have to be answered for when a
// router asks who has it; other rows of ours need not.
func Release(have *State, batch []Op) {
	var needed map[netip.Addr]bool
	walked := slices.ContainsFunc(batch, Op.walks)
	for i := range batch {
		op := &batch[i]
		switch {
		case op.Verb != DelRow || op.Row == nil || op.Row.Kind != Balanced:
			continue
		case !walked && have.Fresh[op.Key] && !have.Received[op.Key.Addr]:
			continue
		case i+1 < len(batch) && batch[i+1].Verb == AddRow && batch[i+1].Key == op.Key:
			continue
		}
		if needed == nil {
			needed = have.othersAt()
		}
		op.Release = !needed[op.Key.Addr]
	}
}

// leftBehind returns what takes back the addresses that NAT44 has made VPP's own and that nothing in it has any more.
func leftBehind(have *State) (ops []Op) {
	if len(have.Received) == 0 {
		return nil
	}
	needed := have.othersAt()
	for key := range have.Rows {
		needed[key.Addr] = true
	}
	for addr := range have.Received {
		if !needed[addr] {
			ops = append(ops, Op{Verb: Withdraw, Addr: addr})
		}
	}
	slices.SortFunc(ops, func(a, b Op) int { return a.Addr.Compare(b.Addr) })
	return ops
}

// othersAt are the addresses of mappings of others and of the SNAT pool.
func (s *State) othersAt() map[netip.Addr]bool {
	at := make(map[netip.Addr]bool, len(s.Foreign)+len(s.Pool))
	for key := range s.Foreign {
		at[key.Addr] = true
	}
	for _, addr := range s.Pool {
		at[addr] = true
	}
	return at
}

// left is what VPP has at addresses besides rows.
type left struct {
	// nat is the id of NAT44's source; 0 = there is none.
	nat uint8
	// held are the addresses that NAT44 has made VPP's own, or may have: a better route hides what it says.
	held map[netip.Addr]bool
}

// steps are what an operation consists of: an address is withdrawn before the last thing goes that tells of it.
func (l left) steps(op Op) []Op {
	switch {
	case op.Verb == Withdraw:
		op.Source = l.nat
	case op.Verb == DelRow && op.Release && l.held[op.Key.Addr]:
		return []Op{{Verb: Withdraw, Addr: op.Key.Addr, Source: l.nat}, op}
	}
	return []Op{op}
}

// readLeft asks VPP what it has at the addresses of the rows that are to be deleted, and for the source of NAT44 where it is needed. A VPP that
// cannot tell has nothing. What an interface that becomes an outside one brings about in the same batch is foreseen.
func readLeft(ctx context.Context, c link.Caller, results []OpResult) (left, error) {
	found := left{held: map[netip.Addr]bool{}}
	var addrs []netip.Addr
	withdraws, walked := false, false
	for i := range results {
		switch op := results[i].Op; {
		case results[i].Err != nil:
		case op.Verb == Withdraw:
			withdraws = true
		case op.walks():
			walked = true
		case op.Verb == DelRow && op.Release:
			addrs = append(addrs, op.Key.Addr)
			found.held[op.Key.Addr] = walked
		}
	}
	walked = walked && len(addrs) > 0
	winners, err := readWinners(ctx, c, addrs)
	if err != nil || len(winners) == 0 && !withdraws && !walked {
		return found, err
	}
	names, err := readSources(ctx, c)
	if err != nil {
		return found, err
	}
	for id, name := range names {
		if name == natSource {
			found.nat = id
		}
	}
	for addr, id := range winners {
		found.held[addr] = found.held[addr] || names[id] != interfaceSource
	}
	return found, nil
}

// readWinners returns the source whose route for exactly one address VPP uses; addresses without a route of their own are not in it.
func readWinners(ctx context.Context, c link.Caller, addrs []netip.Addr) (map[netip.Addr]uint8, error) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	prefixes := make([]netip.Prefix, len(addrs))
	for i, addr := range addrs {
		prefixes[i] = host(addr)
	}
	found, err := forwarding.Winners(ctx, c, prefixes)
	if err != nil {
		return nil, fmt.Errorf("addresses of rows: %w", err)
	}
	winners := map[netip.Addr]uint8{}
	for i, winner := range found {
		_, answered := link.Retval(winner.Err)
		switch {
		case winner.Err == nil:
			winners[addrs[i]] = winner.Source
		case !answered && !errors.Is(winner.Err, link.ErrUnsupported):
			return nil, fmt.Errorf("addresses of rows: %w", winner.Err)
		}
	}
	return winners, nil
}

// readSources returns the names of the sources of VPP's FIB by their ids; none for a VPP that does not tell.
func readSources(ctx context.Context, c link.Caller) (map[uint8]string, error) {
	all, err := forwarding.Sources(ctx, c)
	if err != nil && !errors.Is(err, link.ErrUnsupported) {
		return nil, err
	}
	names := map[uint8]string{}
	for _, s := range all {
		names[s.ID] = s.Name
	}
	return names, nil
}

// readReceived reads the addresses that NAT44 has made VPP's own. It comes before what they may be for: what is new meanwhile is not taken for
// something that was left behind.
func readReceived(ctx context.Context, c link.Caller, state *State) error {
	names, err := readSources(ctx, c)
	if err != nil {
		return err
	}
	for id, name := range names {
		if name != natSource {
			continue
		}
		err := c.Dump(ctx, &ip.IPRouteV2Dump{Src: id}, func(msg api.Message) {
			if d, ok := msg.(*ip.IPRouteV2Details); ok && d.Route.Src == id && d.Route.Prefix.Len == hostBits {
				state.Received[netip.AddrFrom4(d.Route.Prefix.Address.Un.GetIP4())] = true
			}
		})
		if err != nil && !errors.Is(err, link.ErrUnsupported) {
			return fmt.Errorf("read addresses of NAT44: %w", err)
		}
	}
	return nil
}

// withdrawal returns the message that takes back what NAT44 says about an address. Without a source it would be the route of an operator.
func withdrawal(op Op) []api.Message {
	if op.Source == 0 {
		return nil
	}
	return []api.Message{&ip.IPRouteAddDelV2{Route: ip.IPRouteV2{Prefix: forwarding.Prefix(host(op.Addr)), Src: op.Source}}}
}

// host is the prefix of one address.
func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, hostBits) }
