package vnet

import (
	"net/netip"
)

// FIBIndex returns the index of the table with the given id.
func (m *Network) FIBIndex(fam int, tableID uint32) (uint32, bool) {
	for i, t := range m.Tables[fam] {
		if t.ID == tableID {
			return uint32(i), true
		}
	}
	return None, false
}

// Table4 returns the ip4 table with the given FIB index, nil if it is gone.
func (m *Network) Table4(fib uint32) *Table {
	if uint64(fib) >= uint64(len(m.Tables[0])) {
		return nil
	}
	return m.Tables[0][fib]
}

// FindOrCreateFIB returns the index of the table with the given id, which is made if there is none:
// NAT does that for every VRF in a request.
func (m *Network) FindOrCreateFIB(fam int, tableID uint32) uint32 {
	if i, ok := m.FIBIndex(fam, tableID); ok {
		return i
	}
	t := NewTable(tableID, fam == 1, m.Sources)
	m.Tables[fam] = append(m.Tables[fam], t)
	return uint32(len(m.Tables[fam]) - 1)
}

// Hop is where the FIB sends a packet.
type Hop struct {
	Kind   Kind // NextHop, Local, Drop, Unreach or Prohibit
	SwIf   uint32
	Table  uint32 // where the route was found; not of NextHop
	Reason string
}

// maxRecursion bounds how often a next hop is looked up again.
const maxRecursion = 8

// Forward looks up dst in a table and follows recursive paths down to an interface.
func (m *Network) Forward(table uint32, dst netip.Addr) Hop {
	fam := Family(dst)
	target := dst
	for range maxRecursion {
		if uint64(table) >= uint64(len(m.Tables[fam])) {
			return Hop{Kind: Drop, SwIf: None, Reason: "no such table"}
		}
		e := m.Tables[fam][table].Lookup(netip.PrefixFrom(target, target.BitLen()))
		p, ok := m.choose(e.Best().Paths)
		if !ok {
			return Hop{Kind: Drop, SwIf: None, Reason: "no usable path for " + e.Prefix.String()}
		}
		switch p.Kind {
		case Recursive:
			table, target = p.FIB, p.NextHop
		case Lookup:
			table = p.FIB
		case Attached, NextHop:
			return m.onto(p.SwIf)
		default:
			return Hop{Kind: p.Kind, SwIf: p.SwIf, Table: table, Reason: "route " + e.Prefix.String()}
		}
	}
	return Hop{Kind: Drop, SwIf: None, Reason: "recursion loop"}
}

// Known reports whether VPP takes packets from a source to an address of its own that it has found
// in a table: a route of that table leads to the source. Routes that the API has made may lead
// through other tables.
func (m *Network) Known(table uint32, src netip.Addr) bool {
	p, ok := m.choose(m.Tables[Family(src)][table].Lookup(netip.PrefixFrom(src, src.BitLen())).Best().Paths)
	return ok && (p.Kind == Attached || p.Kind == NextHop || p.Kind == Recursive || p.Kind == Lookup)
}

// onto is the hop over an interface, if it can send.
func (m *Network) onto(swIf uint32) Hop {
	if i := m.Interface(swIf); i == nil || !i.AdminUp {
		return Hop{Kind: Drop, SwIf: None, Reason: "interface down"}
	}
	return Hop{Kind: NextHop, SwIf: swIf}
}

// choose picks the first path of the best preference among the paths whose interface is up. VPP
// shares flows among equal paths, which no route of the agent has.
func (m *Network) choose(paths []Path) (best Path, found bool) {
	for _, p := range paths {
		if p.Kind == Attached || p.Kind == NextHop {
			if i := m.Interface(p.SwIf); i == nil || !i.AdminUp {
				continue
			}
		}
		if !found || p.Preference < best.Preference {
			best, found = p, true
		}
	}
	return best, found
}
