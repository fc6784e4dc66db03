package model

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerNAT44Mapping registers the messages about simple and identity mappings.
func registerNAT44Mapping(r Registry) {
	write(r, natStaticMappingV2)
	Read(r, natStaticMappingDump)
	write(r, natIdentityMapping)
	Read(r, natIdentityMappingDump)
}

// decodeFlags turns the flags of a message into flags of a mapping.
func decodeFlags(flags nat_types.NatConfigFlags) nat.Flags {
	var out nat.Flags
	for api, own := range map[nat_types.NatConfigFlags]nat.Flags{
		nat_types.NAT_IS_TWICE_NAT:      nat.MapTwice,
		nat_types.NAT_IS_SELF_TWICE_NAT: nat.MapSelfTwice,
		nat_types.NAT_IS_OUT2IN_ONLY:    nat.MapOut2inOnly,
		nat_types.NAT_IS_ADDR_ONLY:      nat.MapAddrOnly,
	} {
		if flags&api != 0 {
			out |= own
		}
	}
	return out
}

// encodeFlags is the inverse of decodeFlags.
func encodeFlags(flags nat.Flags) nat_types.NatConfigFlags {
	var out nat_types.NatConfigFlags
	if flags.Has(nat.MapTwice) {
		out |= nat_types.NAT_IS_TWICE_NAT
	}
	if flags.Has(nat.MapSelfTwice) {
		out |= nat_types.NAT_IS_SELF_TWICE_NAT
	}
	if flags.Has(nat.MapOut2inOnly) {
		out |= nat_types.NAT_IS_OUT2IN_ONLY
	}
	if flags.Has(nat.MapAddrOnly) {
		out |= nat_types.NAT_IS_ADDR_ONLY
	}
	return out
}

// natStaticMappingV2 adds or deletes a simple mapping. The model does not look at the twice-nat
// address that the message may name.
func natStaticMappingV2(c *Call, req *nat44_ed.Nat44AddDelStaticMappingV2) {
	r := nat.Request{
		Local:    endpoint(req.LocalIPAddress, req.LocalPort),
		External: endpoint(req.ExternalIPAddress, req.ExternalPort),
		Proto:    req.Protocol,
		VRF:      req.VrfID,
		SwIf:     uint32(req.ExternalSwIfIndex),
		Flags:    decodeFlags(req.Flags),
		Tag:      Clip(req.Tag),
	}
	c.Reply(&nat44_ed.Nat44AddDelStaticMappingV2Reply{Retval: c.NAT.ChangeMapping(r, req.IsAdd)})
}

// natStaticMappingDump lists the simple mappings.
func natStaticMappingDump(c *Call, _ *nat44_ed.Nat44StaticMappingDump) {
	for _, mp := range c.NAT.Mappings.All {
		if mp.Flags.Has(nat.MapIdentity | nat.MapLB) {
			continue
		}
		details := &nat44_ed.Nat44StaticMappingDetails{
			Flags:             encodeFlags(mp.Flags),
			LocalIPAddress:    ToIP4(mp.Local.Addr()),
			ExternalIPAddress: ToIP4(mp.External.Addr()),
			ExternalSwIfIndex: interface_types.InterfaceIndex(vnet.None),
			VrfID:             mp.VRF,
			Tag:               mp.Tag,
		}
		if !mp.Flags.Has(nat.MapAddrOnly) {
			details.Protocol = mp.Proto
			details.LocalPort, details.ExternalPort = mp.Local.Port(), mp.External.Port()
		}
		c.Reply(details)
	}
}

// natIdentityMapping adds or deletes an identity mapping. VPP reads only the flag address-only.
func natIdentityMapping(c *Call, req *nat44_ed.Nat44AddDelIdentityMapping) {
	at := endpoint(req.IPAddress, req.Port)
	proto := req.Protocol
	if req.Flags&nat_types.NAT_IS_ADDR_ONLY != 0 {
		at, proto = endpoint(req.IPAddress, 0), 0
	}
	retval := c.NAT.ChangeMapping(nat.Request{
		Local:    at,
		External: at,
		Proto:    proto,
		VRF:      req.VrfID,
		SwIf:     uint32(req.SwIfIndex),
		Flags:    nat.MapIdentity | decodeFlags(req.Flags)&nat.MapAddrOnly,
		Tag:      Clip(req.Tag),
	}, req.IsAdd)
	c.Reply(&nat44_ed.Nat44AddDelIdentityMappingReply{Retval: retval})
}

// natIdentityMappingDump lists identity mappings, one detail for each VRF.
func natIdentityMappingDump(c *Call, _ *nat44_ed.Nat44IdentityMappingDump) {
	for _, mp := range c.NAT.Mappings.All {
		if !mp.Flags.Has(nat.MapIdentity) || mp.Flags.Has(nat.MapLB) {
			continue
		}
		for _, l := range mp.Locals.All {
			c.Reply(&nat44_ed.Nat44IdentityMappingDetails{
				Flags:     encodeFlags(mp.Flags & nat.MapAddrOnly),
				IPAddress: ToIP4(mp.Local.Addr()),
				Protocol:  mp.Proto,
				Port:      mp.Local.Port(),
				SwIfIndex: interface_types.InterfaceIndex(vnet.None),
				VrfID:     l.VRF,
				Tag:       mp.Tag,
			})
		}
	}
}

// registerNAT44LB registers the messages about load-balancing mappings.
func registerNAT44LB(r Registry) {
	write(r, natLBMapping)
	write(r, natLBLocal)
	Read(r, natLBDump)
}

// lbFlags decodes the flags of a load-balancing message: twice-nat wins over self-twice-nat,
// address-only does not exist.
func lbFlags(req *nat44_ed.Nat44AddDelLbStaticMapping) nat.Flags {
	flags := decodeFlags(req.Flags) &^ nat.MapAddrOnly
	if flags.Has(nat.MapTwice) {
		flags &^= nat.MapSelfTwice
	}
	return flags
}

// natLBMapping adds or deletes a load-balancing mapping. The locals are read before anything else,
// for a deletion too.
func natLBMapping(c *Call, req *nat44_ed.Nat44AddDelLbStaticMapping) {
	if len(req.Locals) >= nat.MaxLocals {
		c.Die("nat44_add_del_lb_static_mapping with 256 locals or more")
		return
	}
	external := endpoint(req.ExternalAddr, req.ExternalPort)
	var retval int32
	if req.IsAdd {
		locals := make([]nat.Backend, len(req.Locals))
		for i, l := range req.Locals {
			locals[i] = decodeLocal(l)
		}
		retval = c.NAT.AddLB(&nat.Mapping{
			Flags:    lbFlags(req),
			External: external,
			Proto:    req.Protocol,
			Tag:      Clip(req.Tag),
			Affinity: req.Affinity,
		}, locals)
		c.Grow(heap.NAT44().Of(len(locals), false))
	} else {
		retval = c.NAT.DelLB(external, req.Protocol, lbFlags(req))
	}
	c.Reply(&nat44_ed.Nat44AddDelLbStaticMappingReply{Retval: retval})
}

// decodeLocal decodes a backend.
func decodeLocal(l nat44_ed.Nat44LbAddrPort) nat.Backend {
	return nat.Backend{At: endpoint(l.Addr, l.Port), Probability: l.Probability, VRF: l.VrfID}
}

// natLBLocal adds or deletes one backend of a mapping.
func natLBLocal(c *Call, req *nat44_ed.Nat44LbStaticMappingAddDelLocal) {
	external := endpoint(req.ExternalAddr, req.ExternalPort)
	var retval int32
	if req.IsAdd {
		retval = c.NAT.AddLocal(external, req.Protocol, decodeLocal(req.Local))
		c.Grow(heap.NAT44().Backend)
	} else {
		retval = c.NAT.DelLocal(external, req.Protocol, decodeLocal(req.Local))
	}
	c.Reply(&nat44_ed.Nat44LbStaticMappingAddDelLocalReply{Retval: retval})
}

// natLBDump lists the load-balancing mappings. The affinity is not filled in.
func natLBDump(c *Call, _ *nat44_ed.Nat44LbStaticMappingDump) {
	for _, mp := range c.NAT.Mappings.All {
		if !mp.Flags.Has(nat.MapLB) {
			continue
		}
		details := &nat44_ed.Nat44LbStaticMappingDetails{
			ExternalAddr: ToIP4(mp.External.Addr()),
			ExternalPort: mp.External.Port(),
			Protocol:     mp.Proto,
			Flags:        encodeFlags(mp.Flags),
			Tag:          mp.Tag,
			LocalNum:     uint32(mp.Locals.Len()),
			Locals:       make([]nat44_ed.Nat44LbAddrPort, 0, mp.Locals.Len()),
		}
		for _, l := range mp.Locals.All {
			details.Locals = append(details.Locals, nat44_ed.Nat44LbAddrPort{
				Addr: ToIP4(l.At.Addr()), Port: l.At.Port(), Probability: l.Probability, VrfID: l.VRF,
			})
		}
		c.Reply(details)
	}
}
