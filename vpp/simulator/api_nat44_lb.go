package simulator

import (
	"go.fd.io/govpp/binapi/nat44_ed"
)

// registerNAT44LB registers the messages about load-balancing mappings.
func registerNAT44LB(r registry) {
	write(r, natLBMapping)
	write(r, natLBLocal)
	read(r, natLBDump)
}

// lbFlags decodes the flags of a load-balancing message: twice-nat wins over
// self-twice-nat, address-only does not exist.
func lbFlags(req *nat44_ed.Nat44AddDelLbStaticMapping) mappingFlags {
	flags := decodeFlags(req.Flags) &^ mapAddrOnly
	if flags.has(mapTwice) {
		flags &^= mapSelfTwice
	}
	return flags
}

// natLBMapping adds or deletes a load-balancing mapping. The locals are read
// before anything else, for a deletion too.
func natLBMapping(c *call, req *nat44_ed.Nat44AddDelLbStaticMapping) {
	if len(req.Locals) >= maxLocals {
		c.die("nat44_add_del_lb_static_mapping with 256 locals or more")
		return
	}
	external := endpoint(req.ExternalAddr, req.ExternalPort)
	var retval int32
	if req.IsAdd {
		locals := make([]backend, len(req.Locals))
		for i, l := range req.Locals {
			locals[i] = decodeLocal(l)
		}
		retval = c.nat.addLB(&mapping{
			flags:    lbFlags(req),
			external: external,
			proto:    req.Protocol,
			tag:      clip(req.Tag),
			affinity: req.Affinity,
		}, locals)
	} else {
		retval = c.nat.delLB(external, req.Protocol, lbFlags(req))
	}
	c.reply(&nat44_ed.Nat44AddDelLbStaticMappingReply{Retval: retval})
}

// decodeLocal decodes a backend.
func decodeLocal(l nat44_ed.Nat44LbAddrPort) backend {
	return backend{at: endpoint(l.Addr, l.Port), probability: l.Probability, vrf: l.VrfID}
}

func natLBLocal(c *call, req *nat44_ed.Nat44LbStaticMappingAddDelLocal) {
	external := endpoint(req.ExternalAddr, req.ExternalPort)
	var retval int32
	if req.IsAdd {
		retval = c.nat.addLocal(external, req.Protocol, decodeLocal(req.Local))
	} else {
		retval = c.nat.delLocal(external, req.Protocol, decodeLocal(req.Local))
	}
	c.reply(&nat44_ed.Nat44LbStaticMappingAddDelLocalReply{Retval: retval})
}

// natLBDump lists the load-balancing mappings. The affinity is not filled in.
func natLBDump(c *call, _ *nat44_ed.Nat44LbStaticMappingDump) {
	for _, mp := range c.nat.mappings.all {
		if !mp.flags.has(mapLB) {
			continue
		}
		details := &nat44_ed.Nat44LbStaticMappingDetails{
			ExternalAddr: toIP4(mp.external.Addr()),
			ExternalPort: mp.external.Port(),
			Protocol:     mp.proto,
			Flags:        encodeFlags(mp.flags),
			Tag:          mp.tag,
			LocalNum:     uint32(mp.locals.len()),
			Locals:       make([]nat44_ed.Nat44LbAddrPort, 0, mp.locals.len()),
		}
		for _, l := range mp.locals.all {
			details.Locals = append(details.Locals, nat44_ed.Nat44LbAddrPort{
				Addr: toIP4(l.at.Addr()), Port: l.at.Port(), Probability: l.probability, VrfID: l.vrf,
			})
		}
		c.reply(details)
	}
}
