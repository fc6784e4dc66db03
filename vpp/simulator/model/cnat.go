package model

import (
	"net/netip"

	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	cnatmodel "github.com/troupe-vpp/troupe/vpp/simulator/cnat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerCNAT registers the messages of the cnat plugin.
func registerCNAT(r Registry) {
	write(r, cnatTranslationUpdate)
	write(r, func(c *Call, req *cnat.CnatTranslationDel) {
		c.Reply(&cnat.CnatTranslationDelReply{Retval: c.CNAT.Delete(req.ID)})
	})
	Read(r, cnatTranslationDump)
	Read(r, cnatSessionDump)
	write(r, func(c *Call, _ *cnat.CnatSessionPurge) {
		c.CNAT.Purge()
		c.Reply(&cnat.CnatSessionPurgeReply{})
	})
	write(r, func(c *Call, req *cnat.CnatSetSnatAddresses) {
		s := &c.CNAT.SNAT
		s.IP4, s.IP6, s.SwIf = netip.AddrFrom4(req.SnatIP4), netip.AddrFrom16(req.SnatIP6), uint32(req.SwIfIndex)
		c.Reply(&cnat.CnatSetSnatAddressesReply{})
	})
	Read(r, func(c *Call, _ *cnat.CnatGetSnatAddresses) {
		s := &c.CNAT.SNAT
		c.Reply(&cnat.CnatGetSnatAddressesReply{
			SnatIP4: ToIP4(s.IP4), SnatIP6: s.IP6.As16(), SwIfIndex: interface_types.InterfaceIndex(s.SwIf),
		})
	})
	write(r, func(c *Call, req *cnat.CnatSetSnatPolicy) {
		c.Reply(&cnat.CnatSetSnatPolicyReply{Retval: c.CNAT.SNAT.SetPolicy(uint8(req.Policy))})
	})
	write(r, cnatSnatPolicyAddDelIf)
	write(r, cnatSnatPolicyAddDelExcludePfx)
}

// cnatTranslationUpdate crashes VPP with a translation without paths: VPP allocates for 2^32 of
// them. It crashes too when an address that stays one of VPP is below a route that answers with
// ICMP.
func cnatTranslationUpdate(c *Call, req *cnat.CnatTranslationUpdate) {
	t := &req.Translation
	if len(t.Paths) == 0 {
		c.Die("cnat_translation_update without paths")
		return
	}
	if !namedProto(uint8(t.IPProto)) {
		c.Reply(&cnat.CnatTranslationUpdateReply{Retval: vnet.RetInvalidProtocol, ID: vnet.None})
		return
	}
	row := &cnatmodel.Translation{
		Key:    cnatmodel.Key{VIP: fromEndpoint(t.Vip), Proto: uint8(t.IPProto)},
		RealIP: t.IsRealIP, Flags: t.Flags, LBType: uint8(t.LbType), Hash: uint32(t.FlowHashConfig),
		Paths: make([]cnatmodel.Path, len(t.Paths)),
	}
	for i, p := range t.Paths {
		row.Paths[i] = cnatmodel.Path{Dst: fromEndpoint(p.DstEp), Src: fromEndpoint(p.SrcEp), Flags: p.Flags}
	}
	if t.IsRealIP != 0 && c.CNAT.BelowICMP(row.VIP.Addr) {
		c.Die("cnat_translation_update of a real address below a route that answers with ICMP")
		return
	}
	id := c.CNAT.Update(row)
	c.Grow(TranslationBytes(row))
	c.Reply(&cnat.CnatTranslationUpdateReply{ID: id})
}

// cnatTranslationDump leaves out is_real_ip, the flags and the flow hash, as VPP does.
func cnatTranslationDump(c *Call, _ *cnat.CnatTranslationDump) {
	for id, t := range c.CNAT.Translations.All {
		d := &cnat.CnatTranslationDetails{Translation: cnat.CnatTranslation{
			Vip: toEndpoint(t.VIP), ID: id, IPProto: ip_types.IPProto(t.Proto), LbType: cnat.CnatLbType(t.LBType),
			NPaths: uint32(len(t.Paths)), Paths: make([]cnat.CnatEndpointTuple, len(t.Paths)),
		}}
		for i, p := range t.Paths {
			d.Translation.Paths[i] = cnat.CnatEndpointTuple{DstEp: toEndpoint(p.Dst), SrcEp: toEndpoint(p.Src), Flags: p.Flags}
		}
		c.Reply(d)
	}
}

// cnatSessionDump lists each direction by itself. VPP fills in no timestamp.
func cnatSessionDump(c *Call, _ *cnat.CnatSessionDump) {
	at := func(ap netip.AddrPort) cnat.CnatEndpoint {
		return toEndpoint(cnatmodel.Endpoint{Addr: ap.Addr(), SwIf: vnet.None, Port: ap.Port()})
	}
	for _, s := range c.CNAT.Sessions() {
		c.Reply(&cnat.CnatSessionDetails{Session: cnat.CnatSession{
			Src: at(s.Src), Dst: at(s.Dst), New: at(s.New), IPProto: ip_types.IPProto(s.Proto), Location: s.Location,
		}})
	}
}

func cnatSnatPolicyAddDelIf(c *Call, req *cnat.CnatSnatPolicyAddDelIf) {
	i := cnatmodel.InterfaceTable{SwIf: uint32(req.SwIfIndex), Table: uint8(req.Table)}
	retval := vnet.RetInvalidSwIfIndex
	if c.Interface(i.SwIf) != nil {
		retval = c.CNAT.SNAT.SetInterface(i, req.IsAdd != 0)
	}
	c.Reply(&cnat.CnatSnatPolicyAddDelIfReply{Retval: retval})
}

func cnatSnatPolicyAddDelExcludePfx(c *Call, req *cnat.CnatSnatPolicyAddDelExcludePfx) {
	retval := vnet.RetInvalidValue
	if prefix, ok := FromPrefix(req.Prefix); ok {
		retval = c.CNAT.SNAT.Exclude(prefix, req.IsAdd != 0)
	}
	c.Reply(&cnat.CnatSnatPolicyAddDelExcludePfxReply{Retval: retval})
}

// namedProto reports whether VPP has a name for a protocol.
func namedProto(proto uint8) bool {
	switch proto {
	case 61, 63, 68, 99, 114:
		return false
	}
	return proto < 144 || proto > 252
}

// fromEndpoint decodes an endpoint. Its if_af counts only with an interface, which the model does
// not resolve.
func fromEndpoint(e cnat.CnatEndpoint) cnatmodel.Endpoint {
	return cnatmodel.Endpoint{Addr: forwarding.FromAddress(e.Addr), SwIf: uint32(e.SwIfIndex), Port: e.Port}
}

// toEndpoint encodes an endpoint; VPP fills in if_af from the address.
func toEndpoint(e cnatmodel.Endpoint) cnat.CnatEndpoint {
	addr := forwarding.Address(e.Addr)
	return cnat.CnatEndpoint{Addr: addr, SwIfIndex: interface_types.InterfaceIndex(e.SwIf), IfAf: addr.Af, Port: e.Port}
}
