package simulator

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/codec"
)

// Exec executes a request as if another client had sent it and returns what
// it was answered. It does not count and is not subject to faults: the way to
// let somebody else change VPP under the nose of the client under test.
func (v *VPP) Exec(req api.Message) ([]api.Message, error) {
	m := v.catalog.byName[req.GetMessageName()]
	if m == nil || m.handle == nil {
		return nil, fmt.Errorf("exec %s: %w", req.GetMessageName(), ErrUnknownMessage)
	}
	// The round trip over the wire format gives the handler what it would get
	// from a socket, and the caller keeps its message.
	wire, err := codec.EncodeMsg(req, 0)
	if err != nil {
		return nil, fmt.Errorf("exec %s: %w", m.name, err)
	}
	own, ok := m.decode(wire)
	if !ok {
		return nil, fmt.Errorf("exec %s: malformed request", m.name)
	}
	var replies []api.Message
	err = v.with(func(state *model) error {
		m.handle(&call{model: state, vpp: v, sink: func(reply api.Message) { replies = append(replies, reply) }}, own)
		return nil
	})
	return replies, err
}

// Backend is a backend of a foreign load-balancing row.
type Backend struct {
	// Addr is the backend's endpoint.
	Addr netip.AddrPort
	// Weight is its share of the new sessions.
	Weight uint8
}

// ForeignRow is a load-balancing mapping that somebody else than the client
// under test puts into VPP.
type ForeignRow struct {
	// VIP and Proto are the key of the row.
	VIP   netip.AddrPort
	Proto uint8
	// Tag marks the owner; empty for an owner who does not mark.
	Tag string
	// TwiceNAT and SelfTwiceNAT are the flags of the row; OUT2IN_ONLY is
	// always set.
	TwiceNAT, SelfTwiceNAT bool
	// Affinity is the stickiness in seconds.
	Affinity uint32
	// Backends are the locals, two or more.
	Backends []Backend
}

// ForeignAdd adds a row and returns VPP's return code.
func (v *VPP) ForeignAdd(row ForeignRow) (retval int32, err error) {
	err = v.with(func(m *model) error {
		flags := mapOut2inOnly
		if row.TwiceNAT {
			flags |= mapTwice
		} else if row.SelfTwiceNAT {
			flags |= mapSelfTwice
		}
		locals := make([]backend, 0, len(row.Backends))
		for _, b := range row.Backends {
			locals = append(locals, backend{at: b.Addr, probability: b.Weight})
		}
		retval = m.nat.addLB(&mapping{
			flags: flags, external: row.VIP, proto: row.Proto, tag: clip(row.Tag), affinity: row.Affinity,
		}, locals)
		return nil
	})
	return retval, err
}

// ForeignRemove deletes a row of any type, whoever owns it, and returns VPP's
// return code.
func (v *VPP) ForeignRemove(vip netip.AddrPort, proto uint8) (retval int32, err error) {
	err = v.with(func(m *model) error {
		mp, _ := m.nat.external(vip, proto)
		switch {
		case mp == nil:
			retval = retNoSuchEntry
		case mp.flags.has(mapLB):
			retval = m.nat.delLB(vip, proto, mp.flags)
		default:
			vrf := mp.vrf
			for _, l := range mp.locals.all {
				vrf = l.vrf
			}
			retval = m.nat.delStatic(staticRequest{
				local: mp.local, external: vip, proto: proto, vrf: vrf, flags: mp.flags,
			})
		}
		return nil
	})
	return retval, err
}

// FreezeMappings makes VPP's mapping table full (true) or normal again: a new
// mapping is refused with UNSPECIFIED while it is full.
func (v *VPP) FreezeMappings(full bool) error {
	return v.with(func(m *model) error {
		m.frozen = full
		return nil
	})
}

// FillSessions puts n idle UDP sessions of a foreign service into the session
// table, up to its limit, and returns how many there was room for.
func (v *VPP) FillSessions(n int) (added int, err error) {
	err = v.with(func(m *model) error {
		vip := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, 1}), 9)
		to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, 2}), 9)
		for i := range n {
			client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 19, byte(i >> 16), byte(i >> 8)}), uint16(1024+i&0xff))
			if m.nat.full(0) {
				break
			}
			t := &transit{model: m, Packet: Packet{Src: client, Dst: vip, Proto: ProtoUDP}, txFIB: none, out: none}
			s := t.serviceSession(match{mp: &mapping{flags: mapOut2inOnly | mapLB, external: vip}, at: to})
			if s == nil {
				break
			}
			m.nat.touch(s, 0)
			added++
		}
		return nil
	})
	return added, err
}
