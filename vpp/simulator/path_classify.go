package simulator

import "net/netip"

// classify is the input node of interfaces with both roles. It reports whether
// the packet is to be treated as coming from outside.
func (t *transit) classify() bool {
	n := t.nat
	if t.Proto != ProtoICMP {
		if s := n.flows[t.key(t.rxFIB)]; s != nil {
			return s.i2o.match != t.key(t.rxFIB)
		}
	}
	if n.inPool(t.Dst.Addr()) {
		return true
	}
	if n.mappings.len() == 0 {
		return false
	}
	mp, _ := n.external(netip.AddrPortFrom(t.Dst.Addr(), 0), 0)
	if mp == nil {
		mp, _ = n.external(t.Dst, t.Proto)
	}
	return mp != nil && mp.local.Addr() != mp.external.Addr()
}

// match is the result of a static mapping lookup by external endpoint.
type match struct {
	mp     *mapping
	at     netip.AddrPort
	fib    uint32
	sticky bool // a load-balancing mapping with affinity
}

// matchExternal finds the mapping of an external endpoint, with port or
// address-only, and chooses a backend. client is the zero Addr where VPP
// passes no client: looking for its affinity kills VPP.
func (t *transit) matchExternal(dst netip.AddrPort, client netip.Addr) (match, bool) {
	n := t.nat
	mp, _ := n.external(dst, t.Proto)
	if mp == nil {
		mp, _ = n.external(netip.AddrPortFrom(dst.Addr(), 0), 0)
	}
	if mp == nil {
		return match{}, false
	}
	if mp.flags.has(mapLB) {
		return t.balance(mp, dst, client)
	}
	at := mp.local
	if mp.flags.has(mapAddrOnly) {
		at = netip.AddrPortFrom(mp.local.Addr(), dst.Port())
	}
	return match{mp: mp, at: at, fib: mp.fib}, true
}

// balance chooses a backend of a load-balancing mapping for a client.
func (t *transit) balance(mp *mapping, dst netip.AddrPort, client netip.Addr) (match, bool) {
	n := t.nat
	found := match{mp: mp, sticky: mp.affinity > 0}
	key := affinityKey{client: client, service: dst, proto: t.Proto}
	if mp.affinity > 0 {
		if !client.IsValid() {
			t.die("null client address: affinity of " + mp.external.String() + " looked up on an inside-only path")
			return match{}, false
		}
		if index, ok := n.stick(key); ok {
			l, ok := mp.locals.stale(uint32(index))
			if !ok {
				l = &backend{at: unspecified4}
			}
			found.at, found.fib = l.at, l.fib
			return found, true
		}
	}
	l, index := n.pick(mp)
	if l == nil {
		return match{}, false
	}
	if mp.affinity > 0 {
		n.bindClient(key, mp, index)
	}
	found.at, found.fib = l.at, l.fib
	return found, true
}

// matchInternal finds the mapping of a local endpoint, with port or
// address-only, in the packet's FIB, the inside FIB or the outside FIB.
func (t *transit) matchInternal(src netip.AddrPort) (*mapping, netip.AddrPort) {
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
		if mp.flags.has(mapAddrOnly) {
			return mp, netip.AddrPortFrom(mp.external.Addr(), src.Port())
		}
		return mp, mp.external
	}
	return nil, netip.AddrPort{}
}
