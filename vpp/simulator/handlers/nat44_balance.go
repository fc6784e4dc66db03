package handlers

import (
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

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
			Tag:      wire.Clip(req.Tag),
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
			ExternalAddr: wire.ToIP4(mp.External.Addr()),
			ExternalPort: mp.External.Port(),
			Protocol:     mp.Proto,
			Flags:        encodeFlags(mp.Flags),
			Tag:          mp.Tag,
			LocalNum:     uint32(mp.Locals.Len()),
			Locals:       make([]nat44_ed.Nat44LbAddrPort, 0, mp.Locals.Len()),
		}
		for _, l := range mp.Locals.All {
			details.Locals = append(details.Locals, nat44_ed.Nat44LbAddrPort{
				Addr: wire.ToIP4(l.At.Addr()), Port: l.At.Port(), Probability: l.Probability, VrfID: l.VRF,
			})
		}
		c.Reply(details)
	}
}
