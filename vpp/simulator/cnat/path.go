package cnat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Nodes and the arcs that they stand on, by address family.
var (
	inputs  = [2][2]string{{"ip4-unicast", "cnat-input-ip4"}, {"ip6-unicast", "cnat-input-ip6"}}
	outputs = [2][2]string{{"ip4-output", "cnat-output-ip4"}, {"ip6-output", "cnat-output-ip6"}}
)

// Input is the node on the input arc: packets to a VIP go to a backend of its translation, and
// answers to a replaced source back to it. It changes the packet.
func (p *Plugin) Input(t *vnet.Packet) {
	node := inputs[vnet.Family(t.Src.Addr())]
	if !tracked(t) || !p.net.Has(t.InIndex, node[0], node[1]) {
		return
	}
	p.scan()
	if p.known(t, input) {
		return
	}
	id, found := p.ids[Key{VIP: addressed(t.Dst), Proto: t.Proto}]
	if !found {
		return
	}
	row, _ := p.Translations.Get(id)
	backend := row.choose(t)
	p.open(t, input, output, flow{src: t.Src, dst: backend}, t.Dst.Addr(), source{})
}

// Output is the node on the output arc of an interface: answers of backends get the address of the
// VIP, and sources are replaced where the policy says so. It reports whether the packet goes on.
func (p *Plugin) Output(t *vnet.Packet, out uint32) bool {
	node := outputs[vnet.Family(t.Src.Addr())]
	if !tracked(t) || !p.net.Has(out, node[0], node[1]) {
		return true
	}
	p.scan()
	addr := p.SNAT.address(t.Src.Addr())
	if p.known(t, output) || !p.SNAT.replaces(t, out) || addr.IsUnspecified() {
		return true
	}
	source, free := p.allocate(t.Proto)
	if !free {
		return false
	}
	to := flow{src: netip.AddrPortFrom(addr, source.port), dst: t.Dst}
	if echo(t.Proto) {
		to.dst = netip.AddrPortFrom(t.Dst.Addr(), source.port)
	}
	p.open(t, output, input, to, netip.Addr{}, source)
	return true
}

// addressed is the endpoint of an address and port.
func addressed(at netip.AddrPort) Endpoint {
	return Endpoint{Addr: at.Addr(), SwIf: ^uint32(0), Port: at.Port()}
}

// tracked reports whether a packet can have a session.
func tracked(t *vnet.Packet) bool {
	return t.Proto == vnet.ProtoTCP || t.Proto == vnet.ProtoUDP || echo(t.Proto) || t.Proto == vnet.ProtoSCTP && t.Src.Addr().Is4()
}

// echo reports whether a packet is an echo request or an echo reply: the model has no other ICMP
// packets.
func echo(proto uint8) bool { return proto == vnet.ProtoICMP || proto == vnet.ProtoICMP6 }

// choose returns the backend of a new session: the same one for packets that are equal in what the
// flow hash covers.
func (t *Translation) choose(p *vnet.Packet) netip.AddrPort {
	var best, n uint64
	at := 0
	hash := hashOf(t.Hash, p)
	if t.LBType != 1 {
		n = uint64(len(t.Paths))
		at = int(hash % n)
	} else {
		// maglev: another backend only where one goes or comes. VPP has a table for that; the
		// choice with the largest hash has the same property
		for i, path := range t.Paths {
			if h := mix(hash, path.Dst.Addr.AsSlice(), path.Dst.Port); i == 0 || h > best {
				best, at = h, i
			}
		}
	}
	return netip.AddrPortFrom(t.Paths[at].Dst.Addr, t.Paths[at].Dst.Port)
}

// Bits of the flow hash; 0 = the five of a connection.
const (
	hashSrc = 1 << iota
	hashDst
	hashSrcPort
	hashDstPort
	hashProto
)

// hashOf is the flow hash of a packet.
func hashOf(config uint32, p *vnet.Packet) uint64 {
	if config == 0 {
		config = hashSrc | hashDst | hashSrcPort | hashDstPort | hashProto
	}
	h := uint64(14695981039346656037)
	if config&hashSrc != 0 {
		h = mix(h, p.Src.Addr().AsSlice(), 0)
	}
	if config&hashDst != 0 {
		h = mix(h, p.Dst.Addr().AsSlice(), 0)
	}
	if config&hashSrcPort != 0 {
		h = mix(h, nil, p.Src.Port())
	}
	if config&hashDstPort != 0 {
		h = mix(h, nil, p.Dst.Port())
	}
	if config&hashProto != 0 {
		h = mix(h, nil, uint16(p.Proto))
	}
	return h ^ h>>29 // the low bits decide among few
}

// mix is a step of FNV-1a over bytes and a number.
func mix(h uint64, text []byte, n uint16) uint64 {
	for _, b := range append(text, byte(n>>8), byte(n)) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}
