package handlers

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// registerNAT44Mapping registers the messages about simple and identity mappings.
func registerNAT44Mapping(r Registry) {
	write(r, natStaticMapping)
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

// natStaticMapping adds or deletes a simple mapping.
func natStaticMapping(c *Call, req *nat44_ed.Nat44AddDelStaticMapping) {
	retval := c.NAT.ChangeMapping(nat.Request{
		Local:    endpoint(req.LocalIPAddress, req.LocalPort),
		External: endpoint(req.ExternalIPAddress, req.ExternalPort),
		Proto:    req.Protocol,
		VRF:      req.VrfID,
		SwIf:     uint32(req.ExternalSwIfIndex),
		Flags:    decodeFlags(req.Flags),
		Tag:      wire.Clip(req.Tag),
	}, req.IsAdd)
	c.Reply(&nat44_ed.Nat44AddDelStaticMappingReply{Retval: retval})
}

// natStaticMappingV2 can name the twice-nat address; match_pool is not read.
func natStaticMappingV2(c *Call, req *nat44_ed.Nat44AddDelStaticMappingV2) {
	r := nat.Request{
		Local:    endpoint(req.LocalIPAddress, req.LocalPort),
		External: endpoint(req.ExternalIPAddress, req.ExternalPort),
		Proto:    req.Protocol,
		VRF:      req.VrfID,
		SwIf:     uint32(req.ExternalSwIfIndex),
		Flags:    decodeFlags(req.Flags),
		Pool:     wire.FromIP4(req.PoolIPAddress),
		Tag:      wire.Clip(req.Tag),
	}
	if !r.Pool.IsUnspecified() {
		r.Flags |= nat.MapExact
	}
	c.Reply(&nat44_ed.Nat44AddDelStaticMappingV2Reply{Retval: c.NAT.ChangeMapping(r, req.IsAdd)})
}

// natStaticMappingDump lists the simple mappings, then the templates of the interface-bound ones.
func natStaticMappingDump(c *Call, _ *nat44_ed.Nat44StaticMappingDump) {
	for _, mp := range c.NAT.Mappings.All {
		if mp.Flags.Has(nat.MapIdentity | nat.MapLB) {
			continue
		}
		details := &nat44_ed.Nat44StaticMappingDetails{
			Flags:             encodeFlags(mp.Flags),
			LocalIPAddress:    wire.ToIP4(mp.Local.Addr()),
			ExternalIPAddress: wire.ToIP4(mp.External.Addr()),
			ExternalSwIfIndex: interface_types.InterfaceIndex(pool.None),
			VrfID:             mp.VRF,
			Tag:               mp.Tag,
		}
		if !mp.Flags.Has(nat.MapAddrOnly) {
			details.Protocol = mp.Proto
			details.LocalPort, details.ExternalPort = mp.Local.Port(), mp.External.Port()
		}
		c.Reply(details)
	}
	for _, b := range c.NAT.Unbound {
		if !b.Flags.Has(nat.MapIdentity) {
			c.Reply(templateDetails(b))
		}
	}
}

// templateDetails encodes an interface-bound mapping. Two flags are missing.
func templateDetails(b *nat.BoundMapping) *nat44_ed.Nat44StaticMappingDetails {
	details := &nat44_ed.Nat44StaticMappingDetails{
		Flags:             encodeFlags(b.Flags & (nat.MapTwice | nat.MapAddrOnly)),
		LocalIPAddress:    wire.ToIP4(b.Local.Addr()),
		ExternalSwIfIndex: interface_types.InterfaceIndex(b.SwIf),
		VrfID:             b.VRF,
		Tag:               b.Tag,
	}
	if !b.Flags.Has(nat.MapAddrOnly) {
		details.Protocol = b.Proto
		details.LocalPort, details.ExternalPort = b.Local.Port(), b.External.Port()
	}
	return details
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
		Tag:      wire.Clip(req.Tag),
	}, req.IsAdd)
	c.Reply(&nat44_ed.Nat44AddDelIdentityMappingReply{Retval: retval})
}

// natIdentityMappingDump lists identity mappings, one detail for each VRF, then the templates of
// the interface-bound ones.
func natIdentityMappingDump(c *Call, _ *nat44_ed.Nat44IdentityMappingDump) {
	for _, mp := range c.NAT.Mappings.All {
		if !mp.Flags.Has(nat.MapIdentity) || mp.Flags.Has(nat.MapLB) {
			continue
		}
		for _, l := range mp.Locals.All {
			c.Reply(&nat44_ed.Nat44IdentityMappingDetails{
				Flags:     encodeFlags(mp.Flags & nat.MapAddrOnly),
				IPAddress: wire.ToIP4(mp.Local.Addr()),
				Protocol:  mp.Proto,
				Port:      mp.Local.Port(),
				SwIfIndex: interface_types.InterfaceIndex(pool.None),
				VrfID:     l.VRF,
				Tag:       mp.Tag,
			})
		}
	}
	for _, b := range c.NAT.Unbound {
		if b.Flags.Has(nat.MapIdentity) {
			c.Reply(&nat44_ed.Nat44IdentityMappingDetails{
				Flags:     encodeFlags(b.Flags & nat.MapAddrOnly),
				Protocol:  b.Proto,
				Port:      b.Local.Port(),
				SwIfIndex: interface_types.InterfaceIndex(b.SwIf),
				VrfID:     b.VRF,
				Tag:       b.Tag,
			})
		}
	}
}
