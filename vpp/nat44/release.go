package nat44

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Names of sources of VPP's FIB.
const (
	// natSource is the source of the addresses that NAT44 enters as VPP's own.
	natSource = "nat-low"
	// interfaceSource is the source of interface addresses, which are VPP's own with or without
	// NAT44.
	interfaceSource = "interface"
)

// hostBits is the length of the prefix of one IPv4 address.
const hostBits = 32

// Release sets Op.Release on the deletions of rows in a batch that may leave an unused FIB entry of
// NAT44 behind. Fresh rows have none, and rows that are added again still need theirs. An address
// that a foreign mapping or the SNAT pool uses is kept, because VPP may have to answer ARP requests
// for it; other rows with our tag do not need that.
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

// shared returns the withdrawals of FIB entries of NAT44 for addresses of rows that others may use
// besides. walks says that NAT44 is about to enter the addresses of all mappings, those of idle
// rows among them.
func shared(have *State, want *Want, walks bool) []Op {
	if len(have.Received) == 0 && !walks {
		return nil
	}
	shared, held, needed := map[netip.Addr]bool{}, map[netip.Addr]bool{}, have.othersAt()
	if want.Shared != nil {
		shared = want.Shared()
	}
	for key, row := range have.Rows {
		switch received := have.Received[key.Addr]; {
		case needed[key.Addr]:
		case shared[key.Addr]:
			held[key.Addr] = held[key.Addr] || walks || received
		case !row.Idle():
			needed[key.Addr] = true
			delete(held, key.Addr)
		case walks && !received: // else leftBehind finds it
			held[key.Addr] = true
		}
	}
	maps.DeleteFunc(held, func(_ netip.Addr, entered bool) bool { return !entered })
	return withdrawals(held)
}

// leftBehind returns the withdrawals of FIB entries of NAT44 that no mapping and no pool uses any
// more.
func leftBehind(have *State) []Op {
	if len(have.Received) == 0 {
		return nil
	}
	held, needed := maps.Clone(have.Received), have.othersAt()
	for key, row := range have.Rows {
		if !row.Idle() {
			// an idle row needs none: routes refuse its packets, and an address would
			// hide them
			needed[key.Addr] = true
		}
	}
	maps.DeleteFunc(held, func(addr netip.Addr, _ bool) bool { return needed[addr] })
	return withdrawals(held)
}

// withdrawals returns the withdrawal of each address, in order.
func withdrawals(addrs map[netip.Addr]bool) (ops []Op) {
	for _, addr := range slices.SortedFunc(maps.Keys(addrs), netip.Addr.Compare) {
		ops = append(ops, Op{Verb: Withdraw, Addr: addr})
	}
	return ops
}

// othersAt returns the addresses of foreign mappings and of the SNAT pool.
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

// left is what the FIB holds for the addresses of rows that are to be deleted.
type left struct {
	// nat is the id of NAT44's source; 0 = there is none.
	nat uint8
	// tables are those of IPv4.
	tables []uint32
	// held are the addresses that NAT44 has made VPP's own, or may have: a better route hides
	// the entry.
	held map[netip.Addr]bool
}

// before returns the operation that is sent before another one; nil = none. An address is withdrawn
// before its row is deleted, because the row is the only record of it should the agent stop in
// between.
func (l left) before(op Op) *Op {
	if op.Verb != DelRow || !op.Release || !l.held[op.Key.Addr] {
		return nil
	}
	return &Op{Verb: Withdraw, Addr: op.Key.Addr}
}

// readLeft reads the FIB entries of the addresses of rows that are to be deleted, and the id of
// NAT44's source where it is needed. A VPP without these messages counts as one without entries.
// Entries that a new outside interface in the same batch causes are taken into account.
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
	if len(addrs) == 0 && !withdraws {
		return found, nil
	}
	var err error
	if found.tables, err = readTables(ctx, c); err != nil {
		return found, err
	}
	winners, err := readWinners(ctx, c, addrs, found.tables)
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
	for addr, ids := range winners {
		found.held[addr] = found.held[addr] || slices.ContainsFunc(ids, func(id uint8) bool { return names[id] != interfaceSource })
	}
	return found, nil
}

// readWinners returns the sources whose routes for exactly one address VPP uses in some of
// the tables; it omits addresses without a route of their own.
func readWinners(ctx context.Context, c link.Caller, addrs []netip.Addr, tables []uint32) (map[netip.Addr][]uint8, error) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	prefixes := make([]netip.Prefix, len(addrs))
	for i, addr := range addrs {
		prefixes[i] = host(addr)
	}
	winners := map[netip.Addr][]uint8{}
	for _, table := range tables {
		found, err := forwarding.Winners(ctx, c, table, prefixes)
		if err != nil {
			return nil, fmt.Errorf("addresses of rows: %w", err)
		}
		for i, winner := range found {
			_, answered := link.Retval(winner.Err)
			switch {
			case winner.Err == nil:
				winners[addrs[i]] = append(winners[addrs[i]], winner.Source)
			case !answered && !errors.Is(winner.Err, link.ErrUnsupported):
				return nil, fmt.Errorf("addresses of rows: %w", winner.Err)
			}
		}
	}
	return winners, nil
}

// readSources returns the names of the sources of VPP's FIB by their ids; the map is empty for a
// VPP without the message.
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

// readTables returns the IDs of the tables of IPv4. A VPP without the message has the default one.
func readTables(ctx context.Context, c link.Caller) ([]uint32, error) {
	tables := []uint32{0}
	err := link.Each(ctx, c, &ip.IPTableDump{}, func(d *ip.IPTableDetails) {
		if !d.Table.IsIP6 && d.Table.TableID != 0 {
			tables = append(tables, d.Table.TableID)
		}
	})
	if err != nil && !errors.Is(err, link.ErrUnsupported) {
		return nil, fmt.Errorf("read tables: %w", err)
	}
	return tables, nil
}

// readReceived reads the addresses that NAT44 has made VPP's own. It does so in the table of each
// interface with the outside role. It runs before the dumps of
// mappings: a mapping that is added meanwhile is then in the dump, and its address is not taken for
// one left behind.
func readReceived(ctx context.Context, c link.Caller, state *State) error {
	names, err := readSources(ctx, c)
	if err != nil {
		return err
	}
	for id, name := range names {
		if name != natSource {
			continue
		}
		tables, err := readTables(ctx, c)
		for _, table := range tables {
			err = errors.Join(err, link.Each(ctx, c, &ip.IPRouteV2Dump{Src: id, Table: ip.IPTable{TableID: table}}, func(d *ip.IPRouteV2Details) {
				if d.Route.Src == id && d.Route.Prefix.Len == hostBits {
					state.Received[netip.AddrFrom4(d.Route.Prefix.Address.Un.GetIP4())] = true
				}
			}))
		}
		if err != nil && !errors.Is(err, link.ErrUnsupported) {
			return fmt.Errorf("read addresses of NAT44: %w", err)
		}
	}
	return nil
}

// withdrawal returns the messages that remove NAT44's FIB entries of an address. Without a source
// there is none: source 0 would delete the route of an operator.
func (l left) withdrawal(addr netip.Addr) (msgs []api.Message) {
	if l.nat == 0 {
		return nil
	}
	for _, table := range l.tables {
		msgs = append(msgs, &ip.IPRouteAddDelV2{Route: ip.IPRouteV2{TableID: table, Prefix: forwarding.Prefix(host(addr)), Src: l.nat}})
	}
	return msgs
}

// host is the prefix of one address.
func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, hostBits) }
