package vnet

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/fib"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
)

// FIBIndex returns the index of the table with the given id.
func (m *Network) FIBIndex(fam int, tableID uint32) (uint32, bool) {
	for i, t := range m.Tables[fam] {
		if t.ID == tableID {
			return uint32(i), true
		}
	}
	return pool.None, false
}

// Table4 returns the ip4 table with the given FIB index, nil if it is gone.
func (m *Network) Table4(fib uint32) *fib.Table {
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
	t := fib.NewTable(tableID, fam == 1, m.Sources)
	m.Tables[fam] = append(m.Tables[fam], t)
	return uint32(len(m.Tables[fam]) - 1)
}

// Hop is where the FIB sends a packet.
type Hop struct {
	Kind    fib.Kind // fib.NextHop, Local, Drop, Unreach or Prohibit
	SwIf    uint32
	NextHop netip.Addr
	Reason  string
}

// maxRecursion bounds how often a next hop is looked up again.
const maxRecursion = 8

// Forward looks up dst in a table and follows recursive paths down to an interface. src takes part
// in the choice among equal paths.
func (m *Network) Forward(table uint32, dst, src netip.Addr) Hop {
	fam := Family(dst)
	target := dst
	for range maxRecursion {
		if uint64(table) >= uint64(len(m.Tables[fam])) {
			return Hop{Kind: fib.Drop, SwIf: pool.None, Reason: "no such table"}
		}
		e := m.Tables[fam][table].Lookup(netip.PrefixFrom(target, target.BitLen()))
		p, ok := m.choose(e.Best().Paths, dst, src)
		if !ok {
			return Hop{Kind: fib.Drop, SwIf: pool.None, Reason: "no usable path for " + e.Prefix.String()}
		}
		switch p.Kind {
		case fib.Recursive:
			table, target = p.FIB, p.NextHop
		case fib.Lookup:
			table = p.FIB
		case fib.Attached:
			return m.onto(p.SwIf, target)
		case fib.NextHop:
			return m.onto(p.SwIf, p.NextHop)
		default:
			return Hop{Kind: p.Kind, SwIf: p.SwIf, Reason: "route " + e.Prefix.String()}
		}
	}
	return Hop{Kind: fib.Drop, SwIf: pool.None, Reason: "recursion loop"}
}

// onto is the hop over an interface, if it can send.
func (m *Network) onto(swIf uint32, nextHop netip.Addr) Hop {
	if i := m.Interface(swIf); i == nil || !i.AdminUp {
		return Hop{Kind: fib.Drop, SwIf: pool.None, Reason: "interface down"}
	}
	return Hop{Kind: fib.NextHop, SwIf: swIf, NextHop: nextHop}
}

// flowHash decides among equal paths; the same flow takes the same one (FNV-1a).
func flowHash(dst, src netip.Addr) uint64 {
	h := uint64(14695981039346656037)
	for _, addr := range [2]netip.Addr{dst, src} {
		for _, b := range addr.As16() {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return h
}

// choose picks a path of the best preference among the paths whose interface is up, by weight and
// flow.
func (m *Network) choose(paths []fib.Path, dst, src netip.Addr) (fib.Path, bool) {
	usable := make([]fib.Path, 0, len(paths))
	for _, p := range paths {
		if p.Kind == fib.Attached || p.Kind == fib.NextHop {
			if i := m.Interface(p.SwIf); i == nil || !i.AdminUp {
				continue
			}
		}
		if len(usable) > 0 && p.Preference < usable[0].Preference {
			usable = usable[:0]
		}
		if len(usable) == 0 || p.Preference == usable[0].Preference {
			usable = append(usable, p)
		}
	}
	if len(usable) < 2 {
		return first(usable)
	}
	sum := uint64(0)
	for _, p := range usable {
		sum += uint64(p.Weight)
	}
	at := flowHash(dst, src) % max(sum, 1)
	for _, p := range usable {
		if at < uint64(p.Weight) {
			return p, true
		}
		at -= uint64(p.Weight)
	}
	return first(usable)
}

// first returns the first path, if there is one.
func first(paths []fib.Path) (fib.Path, bool) {
	if len(paths) == 0 {
		return fib.Path{}, false
	}
	return paths[0], true
}
