package simulator

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/codec"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Exec executes a request as if another client had sent it and returns the replies. It does not
// count and is not subject to faults: the way to change VPP behind the client under test.
func (v *VPP) Exec(req api.Message) ([]api.Message, error) {
	m := v.catalog.Named(req.GetMessageName())
	if m == nil || !m.Request {
		return nil, fmt.Errorf("exec %s: %w", req.GetMessageName(), ErrUnknownMessage)
	}
	// The round trip over the wire format gives the handler the same as a socket would, and the
	// caller keeps its message.
	encoded, err := codec.EncodeMsg(req, 0)
	if err != nil {
		return nil, fmt.Errorf("exec %s: %w", m.Name, err)
	}
	own, ok := m.Decode(encoded)
	if !ok {
		return nil, fmt.Errorf("exec %s: malformed request", m.Name)
	}
	var replies []api.Message
	err = v.with(func(state *model.Model) error {
		v.handlers.Handle(model.NewCall(state, v.inc.pid, vnet.None, func(reply api.Message) { replies = append(replies, reply) }), m, own)
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

// ForeignRow is a load-balancing mapping that another client than the one under test adds to VPP.
type ForeignRow struct {
	// VIP and Proto are the key of the row.
	VIP   netip.AddrPort
	Proto uint8
	// Tag marks the owner; empty for an owner without tags.
	Tag string
	// TwiceNAT and SelfTwiceNAT are the flags of the row; OUT2IN_ONLY is always set.
	TwiceNAT, SelfTwiceNAT bool
	// Backends are the locals, two or more.
	Backends []Backend
}

// ForeignAdd adds a row and returns VPP's return code.
func (v *VPP) ForeignAdd(row ForeignRow) (retval int32, err error) {
	err = v.with(func(m *model.Model) error {
		flags := nat.MapOut2inOnly
		if row.TwiceNAT {
			flags |= nat.MapTwice
		} else if row.SelfTwiceNAT {
			flags |= nat.MapSelfTwice
		}
		locals := make([]nat.Backend, 0, len(row.Backends))
		for _, b := range row.Backends {
			locals = append(locals, nat.Backend{At: b.Addr, Probability: b.Weight})
		}
		retval = m.NAT.AddLB(&nat.Mapping{
			Flags: flags, External: row.VIP, Proto: row.Proto, Tag: model.Clip(row.Tag),
		}, locals)
		return nil
	})
	return retval, err
}

// ForeignRemove deletes a row of any type and owner, and returns VPP's return code.
func (v *VPP) ForeignRemove(vip netip.AddrPort, proto uint8) (retval int32, err error) {
	err = v.with(func(m *model.Model) error {
		mp, _ := m.NAT.External(vip, proto)
		switch {
		case mp == nil:
			retval = vnet.RetNoSuchEntry
		case mp.Flags.Has(nat.MapLB):
			retval = m.NAT.DelLB(vip, proto, mp.Flags)
		default:
			vrf := mp.VRF
			for _, l := range mp.Locals.All {
				vrf = l.VRF
			}
			retval = m.NAT.DelStatic(nat.Request{
				Local: mp.Local, External: vip, Proto: proto, VRF: vrf, Flags: mp.Flags,
			})
		}
		return nil
	})
	return retval, err
}

// FreezeMappings makes VPP's mapping table full (true) or normal again: a new mapping is refused
// with UNSPECIFIED while it is full.
func (v *VPP) FreezeMappings(full bool) error {
	return v.with(func(m *model.Model) error {
		m.NAT.Frozen = full
		return nil
	})
}

// FillSessions puts n idle UDP sessions of a foreign service into the session table, up to its
// limit, and returns how many there was room for.
func (v *VPP) FillSessions(n int) (added int, err error) {
	err = v.with(func(m *model.Model) error {
		added = m.NAT.FillSessions(n)
		return nil
	})
	return added, err
}
