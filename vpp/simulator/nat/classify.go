package nat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// classify is the input node of interfaces with both roles. It reports whether the packet is to be
// treated as coming from outside.
func (t *Transit) classify() bool {
	n := t.nat
	if t.Proto != vnet.ProtoICMP {
		if s := n.flows[t.key(t.rxFIB)]; s != nil {
			return s.i2o.match != t.key(t.rxFIB)
		}
	}
	if n.inPool(t.Dst.Addr()) {
		return true
	}
	if n.Mappings.Len() == 0 {
		return false
	}
	mp, _ := n.External(netip.AddrPortFrom(t.Dst.Addr(), 0), 0)
	if mp == nil {
		mp, _ = n.External(t.Dst, t.Proto)
	}
	return mp != nil && mp.Local.Addr() != mp.External.Addr()
}

// match is the result of a static mapping lookup by external endpoint.
type match struct {
	mp     *Mapping
	at     netip.AddrPort
	fib    uint32
	sticky bool // a load-balancing mapping with affinity
}

// matchExternal finds the mapping of an external endpoint, with port or address-only, and chooses a
// backend. client is the zero Addr where VPP passes no client: looking up its affinity crashes VPP.
func (t *Transit) matchExternal(dst netip.AddrPort, client netip.Addr) (match, bool) {
	n := t.nat
	mp, _ := n.External(dst, t.Proto)
	if mp == nil {
		mp, _ = n.External(netip.AddrPortFrom(dst.Addr(), 0), 0)
	}
	if mp == nil {
		return match{}, false
	}
	if mp.Flags.Has(MapLB) {
		return t.balance(mp, dst, client)
	}
	at := mp.Local
	if mp.Flags.Has(MapAddrOnly) {
		at = netip.AddrPortFrom(mp.Local.Addr(), dst.Port())
	}
	return match{mp: mp, at: at, fib: mp.fib}, true
}

// balance chooses a backend of a load-balancing mapping for a client.
func (t *Transit) balance(mp *Mapping, dst netip.AddrPort, client netip.Addr) (match, bool) {
	n := t.nat
	found := match{mp: mp, sticky: mp.Affinity > 0}
	key := affinityKey{client: client, service: dst, proto: t.Proto}
	if mp.Affinity > 0 {
		if !client.IsValid() {
			t.Die("null client address: affinity of " + mp.External.String() + " looked up on an inside-only path")
			return match{}, false
		}
		if index, ok := n.stick(key); ok {
			l, ok := mp.Locals.Stale(uint32(index))
			if !ok {
				l = &Backend{At: unspecified4}
			}
			found.at, found.fib = l.At, l.fib
			return found, true
		}
	}
	l, index := n.pick(mp)
	if l == nil {
		return match{}, false
	}
	if mp.Affinity > 0 {
		n.bindClient(key, mp, index)
	}
	found.at, found.fib = l.At, l.fib
	return found, true
}

// matchInternal finds the mapping of a local endpoint, with port or address-only, in the packet's
// FIB, the inside FIB or the outside FIB.
func (t *Transit) matchInternal(src netip.AddrPort) (*Mapping, netip.AddrPort) {
	n := t.nat
	bare := netip.AddrPortFrom(src.Addr(), 0)
	for i, fib := range [3]uint32{t.rxFIB, n.insideFIB, n.outsideFIB} {
		if i > 0 && fib == t.rxFIB {
			continue
		}
		mp := n.internal(src, fib, t.Proto)
		if mp == nil {
			mp = n.internal(bare, fib, 0)
		}
		if mp == nil {
			continue
		}
		if mp.Flags.Has(MapAddrOnly) {
			return mp, netip.AddrPortFrom(mp.External.Addr(), src.Port())
		}
		return mp, mp.External
	}
	return nil, netip.AddrPort{}
}
