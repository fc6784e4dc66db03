package simulator

import (
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// registerNAT44Mapping registers the messages about simple and identity
// mappings.
func registerNAT44Mapping(r registry) {
	write(r, natStaticMapping)
	write(r, natStaticMappingV2)
	read(r, natStaticMappingDump)
	write(r, natIdentityMapping)
	read(r, natIdentityMappingDump)
}

// decodeFlags turns the flags of a message into those of a mapping.
func decodeFlags(flags nat_types.NatConfigFlags) mappingFlags {
	var out mappingFlags
	for api, own := range map[nat_types.NatConfigFlags]mappingFlags{
		nat_types.NAT_IS_TWICE_NAT:      mapTwice,
		nat_types.NAT_IS_SELF_TWICE_NAT: mapSelfTwice,
		nat_types.NAT_IS_OUT2IN_ONLY:    mapOut2inOnly,
		nat_types.NAT_IS_ADDR_ONLY:      mapAddrOnly,
	} {
		if flags&api != 0 {
			out |= own
		}
	}
	return out
}

// encodeFlags is the inverse of decodeFlags.
func encodeFlags(flags mappingFlags) nat_types.NatConfigFlags {
	var out nat_types.NatConfigFlags
	if flags.has(mapTwice) {
		out |= nat_types.NAT_IS_TWICE_NAT
	}
	if flags.has(mapSelfTwice) {
		out |= nat_types.NAT_IS_SELF_TWICE_NAT
	}
	if flags.has(mapOut2inOnly) {
		out |= nat_types.NAT_IS_OUT2IN_ONLY
	}
	if flags.has(mapAddrOnly) {
		out |= nat_types.NAT_IS_ADDR_ONLY
	}
	return out
}

// changeMapping adds or deletes a simple or identity mapping.
func (n *nat44) changeMapping(r staticRequest, add bool) int32 {
	if r.swIf != none {
		r.flags |= mapInterface
		r.external = endpoint([4]byte{}, r.external.Port())
	}
	if r.flags.has(mapAddrOnly) {
		r.local = endpoint(r.local.Addr().As4(), 0)
		r.external = endpoint(r.external.Addr().As4(), 0)
	}
	r.tag = clip(r.tag)
	if add {
		return n.addMapping(r)
	}
	return n.delMapping(r)
}

func natStaticMapping(c *call, req *nat44_ed.Nat44AddDelStaticMapping) {
	retval := c.nat.changeMapping(staticRequest{
		local:    endpoint(req.LocalIPAddress, req.LocalPort),
		external: endpoint(req.ExternalIPAddress, req.ExternalPort),
		proto:    req.Protocol,
		vrf:      req.VrfID,
		swIf:     uint32(req.ExternalSwIfIndex),
		flags:    decodeFlags(req.Flags),
		tag:      req.Tag,
	}, req.IsAdd)
	c.reply(&nat44_ed.Nat44AddDelStaticMappingReply{Retval: retval})
}

// natStaticMappingV2 can name the twice-nat address; match_pool is not read.
func natStaticMappingV2(c *call, req *nat44_ed.Nat44AddDelStaticMappingV2) {
	r := staticRequest{
		local:    endpoint(req.LocalIPAddress, req.LocalPort),
		external: endpoint(req.ExternalIPAddress, req.ExternalPort),
		proto:    req.Protocol,
		vrf:      req.VrfID,
		swIf:     uint32(req.ExternalSwIfIndex),
		flags:    decodeFlags(req.Flags),
		pool:     fromIP4(req.PoolIPAddress),
		tag:      req.Tag,
	}
	if !r.pool.IsUnspecified() {
		r.flags |= mapExact
	}
	c.reply(&nat44_ed.Nat44AddDelStaticMappingV2Reply{Retval: c.nat.changeMapping(r, req.IsAdd)})
}

// natStaticMappingDump lists the simple mappings, then the templates of the
// interface-bound ones.
func natStaticMappingDump(c *call, _ *nat44_ed.Nat44StaticMappingDump) {
	for _, mp := range c.nat.mappings.all {
		if mp.flags.has(mapIdentity | mapLB) {
			continue
		}
		details := &nat44_ed.Nat44StaticMappingDetails{
			Flags:             encodeFlags(mp.flags),
			LocalIPAddress:    toIP4(mp.local.Addr()),
			ExternalIPAddress: toIP4(mp.external.Addr()),
			ExternalSwIfIndex: interface_types.InterfaceIndex(none),
			VrfID:             mp.vrf,
			Tag:               mp.tag,
		}
		if !mp.flags.has(mapAddrOnly) {
			details.Protocol = mp.proto
			details.LocalPort, details.ExternalPort = mp.local.Port(), mp.external.Port()
		}
		c.reply(details)
	}
	for _, b := range c.nat.unbound {
		if !b.flags.has(mapIdentity) {
			c.reply(templateDetails(b))
		}
	}
}

// templateDetails encodes an interface-bound mapping. Two flags are missing.
func templateDetails(b *boundMapping) *nat44_ed.Nat44StaticMappingDetails {
	details := &nat44_ed.Nat44StaticMappingDetails{
		Flags:             encodeFlags(b.flags & (mapTwice | mapAddrOnly)),
		LocalIPAddress:    toIP4(b.local.Addr()),
		ExternalSwIfIndex: interface_types.InterfaceIndex(b.swIf),
		VrfID:             b.vrf,
		Tag:               b.tag,
	}
	if !b.flags.has(mapAddrOnly) {
		details.Protocol = b.proto
		details.LocalPort, details.ExternalPort = b.local.Port(), b.external.Port()
	}
	return details
}

func natIdentityMapping(c *call, req *nat44_ed.Nat44AddDelIdentityMapping) {
	at := endpoint(req.IPAddress, req.Port)
	proto := req.Protocol
	if req.Flags&nat_types.NAT_IS_ADDR_ONLY != 0 {
		at, proto = endpoint(req.IPAddress, 0), 0
	}
	retval := c.nat.changeMapping(staticRequest{
		local:    at,
		external: at,
		proto:    proto,
		vrf:      req.VrfID,
		swIf:     uint32(req.SwIfIndex),
		flags:    mapIdentity | decodeFlags(req.Flags)&mapAddrOnly,
		tag:      req.Tag,
	}, req.IsAdd)
	c.reply(&nat44_ed.Nat44AddDelIdentityMappingReply{Retval: retval})
}

func natIdentityMappingDump(c *call, _ *nat44_ed.Nat44IdentityMappingDump) {
	for _, mp := range c.nat.mappings.all {
		if !mp.flags.has(mapIdentity) || mp.flags.has(mapLB) {
			continue
		}
		for _, l := range mp.locals.all {
			c.reply(&nat44_ed.Nat44IdentityMappingDetails{
				Flags:     encodeFlags(mp.flags & mapAddrOnly),
				IPAddress: toIP4(mp.local.Addr()),
				Protocol:  mp.proto,
				Port:      mp.local.Port(),
				SwIfIndex: interface_types.InterfaceIndex(none),
				VrfID:     l.vrf,
				Tag:       mp.tag,
			})
		}
	}
	for _, b := range c.nat.unbound {
		if b.flags.has(mapIdentity) {
			c.reply(&nat44_ed.Nat44IdentityMappingDetails{
				Flags:     encodeFlags(b.flags & mapAddrOnly),
				Protocol:  b.proto,
				Port:      b.local.Port(),
				SwIfIndex: interface_types.InterfaceIndex(b.swIf),
				VrfID:     b.vrf,
				Tag:       b.tag,
			})
		}
	}
}
