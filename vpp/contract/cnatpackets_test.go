package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// family are the addresses of a node with CNAT, in one address family.
type family struct {
	ip6 bool
	// pod is the first of two pods, far the backend on another node, outside a client that is
	// no pod.
	pod, second, far, outside, node, snat, vip string
}

var families = []family{
	{true, "fd00:1::1", "fd00:1::2", "fd00:2::1", "2001:db8::9", "2001:db8::1", "fd00:1::ffff", "fd00:96::1"},
	{false, "10.1.1.1", "10.1.1.2", "10.1.2.1", "198.51.100.9", "198.51.100.1", "10.1.1.254", "10.96.0.1"},
}

// cnatNode is a node whose interfaces all have CNAT: two pods and the uplink.
type cnatNode struct {
	*rig
	*testing.T
	family
	traffic              traffic
	first, other, uplink interface_types.InterfaceIndex
	id                   uint64
}

// newCNATNode makes one with the SNAT policy of Kubernetes.
func newCNATNode(t *testing.T, v *rig, f family) *cnatNode {
	t.Helper()
	n := &cnatNode{rig: v, T: t, family: f, traffic: v.Traffic(t, v)}
	says := v.version(t).cnat
	if !says.addressFirst {
		v.expect(t, ok, says.policy(cnat.CNAT_POLICY_K8S))
	}
	snat := &cnat.CnatSetSnatAddresses{SwIfIndex: none}
	proto, bits := fib_types.FIB_API_PATH_NH_PROTO_IP4, 32
	if f.ip6 {
		proto, bits, snat.SnatIP6 = fib_types.FIB_API_PATH_NH_PROTO_IP6, 128, netip.MustParseAddr(f.snat).As16()
	} else {
		snat.SnatIP4 = netip.MustParseAddr(f.snat).As4()
	}
	v.expect(t, ok, snat)
	if says.addressFirst {
		v.expect(t, ok, says.policy(cnat.CNAT_POLICY_K8S))
	}
	for i, reached := range [][]string{{f.pod}, {f.second}, {f.far, f.outside}} {
		index := n.traffic.port(t, f.ip6)
		v.expect(t, ok, up(index))
		addr := fmt.Sprintf("172.16.0.%d/32", index)
		if f.ip6 {
			addr = fmt.Sprintf("fd00:ff::%d/128", index)
		}
		if i == 2 {
			addr = fmt.Sprintf("%s/%d", f.node, bits)
		}
		v.expect(t, ok, address(t, index, addr))
		for _, host := range reached {
			path := via(index, [4]byte{})
			path.Proto = proto
			v.expect(t, ok, route(t, fmt.Sprintf("%s/%d", host, bits), path))
		}
		for _, node := range says.nodes {
			if f.ip6 == (node[0][2] == '6') {
				v.expect(t, ok, &feature.FeatureEnableDisable{SwIfIndex: index, Enable: true, ArcName: node[0], FeatureName: node[1]})
			}
		}
		switch i {
		case 0:
			n.first = index
		case 1:
			n.other = index
		default:
			n.uplink = index
		}
		if i < 2 {
			v.expect(t, ok, &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: index, IsAdd: 1, Table: cnat.CNAT_POLICY_POD})
		}
	}
	return n
}

// seen is the source that the backend on the other node sees of the first pod, whose addresses have
// the same last 32 bits.
func (n *cnatNode) seen() netip.Addr {
	if n.ip6 && n.version(n).cnat.selfByLast32 {
		return netip.MustParseAddr(n.snat)
	}
	return netip.MustParseAddr(n.pod)
}

// hostPort is an address of the family with a port.
func hostPort(addr string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(addr), port)
}

// serve adds a translation of a TCP or UDP port.
func (n *cnatNode) serve(proto uint8, vip string, port uint16, change func(*cnat.CnatTranslation), backends ...string) uint32 {
	n.Helper()
	msg := translation(vip, backends...)
	msg.Translation.Vip.Port, msg.Translation.IPProto = port, ip_types.IPProto(proto)
	if change != nil {
		change(&msg.Translation)
	}
	return update(n, n.rig, msg)
}

// send sends one packet and returns how it left, and whether it did.
func (n *cnatNode) send(in interface_types.InterfaceIndex, proto, flags uint8, src, dst netip.AddrPort) (packet, bool) {
	n.Helper()
	n.id++
	p := packet{port: in, id: n.id, src: src, dst: dst, proto: proto, flags: protoFlags(proto, flags)}
	got, found := n.traffic.exchange(n, []packet{p})[p.id]
	return got, found
}

// exchange sends a packet that begins a connection and its answer, and reports where it arrived.
// want is the source that the backend has to see; its port does not matter where VPP chooses it.
func (n *cnatNode) exchange(in interface_types.InterfaceIndex, proto uint8, src, dst netip.AddrPort, out interface_types.InterfaceIndex, want netip.Addr) netip.AddrPort {
	n.Helper()
	got, found := n.send(in, proto, syn, src, dst)
	if !found || got.port != out || got.src.Addr() != want || want == src.Addr() && want != got.dst.Addr() && got.src != src {
		n.Errorf("%s > %s: left %v through %d, want %d from %s: %s", src, dst, found, got.port, out, want, got)
		return got.dst
	}
	back, found := n.send(out, proto, syn|ack, got.dst, got.src)
	if !found || back.port != in || back.src != dst || back.dst != src {
		n.Errorf("answer to %s > %s: left %v through %d, want %d: %s", src, dst, found, back.port, in, back)
	}
	return got.dst
}

// moves waits until the packets of an open connection leave through another interface; 0 = get
// lost.
func (n *cnatNode) moves(src, dst netip.AddrPort, out interface_types.InterfaceIndex) {
	n.Helper()
	waitFor(n, "the session to end", func() bool {
		got, found := n.send(n.first, rule.TCP, ack, src, dst)
		return found == (out != 0) && got.port == out
	})
}

// lost sends a packet that must not arrive.
func (n *cnatNode) lost(in interface_types.InterfaceIndex, proto uint8, src, dst netip.AddrPort) {
	n.Helper()
	if got, found := n.send(in, proto, syn, src, dst); found {
		n.Errorf("%s > %s arrived: %s", src, dst, got)
	}
}

// cnatPackets are cases with packets; each is played in both address families.
var cnatPackets = func() (cases []contractCase) {
	for _, c := range []struct {
		name string
		run  func(n *cnatNode)
	}{
		{"from a pod to a pod and to another node", func(n *cnatNode) {
			for _, proto := range []uint8{rule.TCP, rule.UDP} {
				n.serve(proto, n.vip, 80, nil, n.second)
				n.serve(proto, n.vip, 81, nil, n.far)
				pod := netip.MustParseAddr(n.pod)
				n.exchange(n.first, proto, hostPort(n.pod, 40000), hostPort(n.vip, 80), n.other, pod)
				n.exchange(n.first, proto, hostPort(n.pod, 40001), hostPort(n.vip, 81), n.uplink, n.seen())
				// of an address that is all CNAT's
				n.lost(n.first, proto, hostPort(n.pod, 40002), hostPort(n.vip, 82))
			}
		}},
		{"a pod reaches itself, from the SNAT address", func(n *cnatNode) {
			n.serve(rule.TCP, n.vip, 80, nil, n.pod)
			n.exchange(n.first, rule.TCP, hostPort(n.pod, 40000), hostPort(n.vip, 80), n.first, netip.MustParseAddr(n.snat))
		}},
		{"a node port: the client keeps its address before a local pod only", func(n *cnatNode) {
			real := func(t *cnat.CnatTranslation) { t.IsRealIP = 1 }
			n.serve(rule.TCP, n.node, 30080, real, n.pod)
			n.serve(rule.TCP, n.node, 30081, real, n.far)
			n.exchange(n.uplink, rule.TCP, hostPort(n.outside, 40000), hostPort(n.node, 30080), n.first, netip.MustParseAddr(n.outside))
			n.exchange(n.uplink, rule.TCP, hostPort(n.outside, 40000), hostPort(n.node, 30081), n.uplink, netip.MustParseAddr(n.snat))
			n.exchange(n.other, rule.TCP, hostPort(n.second, 40000), hostPort(n.node, 30080), n.first, netip.MustParseAddr(n.second))
		}},
		{"a backend that goes keeps its connections and flows, others get the rest", func(n *cnatNode) {
			for _, proto := range []uint8{rule.TCP, rule.UDP} {
				n.serve(proto, n.vip, 80, nil, n.second)
				src, dst := hostPort(n.pod, 40000), hostPort(n.vip, 80)
				n.exchange(n.first, proto, src, dst, n.other, src.Addr())
				stays := func() {
					n.Helper()
					if got, found := n.send(n.first, proto, ack, src, dst); !found || got.port != n.other {
						n.Errorf("a packet of what is open, protocol %d, left %v through %d", proto, found, got.port)
					}
				}
				id := n.serve(proto, n.vip, 80, nil, n.far)
				stays()
				n.exchange(n.first, proto, hostPort(n.pod, 40001), dst, n.uplink, n.seen())
				n.expect(n.T, ok, &cnat.CnatTranslationDel{ID: id})
				stays()
				n.lost(n.first, proto, hostPort(n.pod, 40002), dst)
			}
		}},
		{"sessions end with their backend where VPP looks for it often enough", func(n *cnatNode) {
			says := n.version(n).cnat
			if !says.endsSessions {
				n.Skip("this version keeps the sessions of a backend that has gone, see the case before")
			}
			// By default VPP has room for so many sessions that it takes more than 400
			// s to look at all of them.
			process := n.Target.(real).Process
			process.Configure("cnat { session-max 65536 session-cleanup-timeout 0.1 }")
			process.Crash(n)
			n.waitDown(n)
			process.Restart(n)
			n.waitUp(n)
			again := newCNATNode(n.T, n.rig, n.family)
			again.serve(rule.TCP, n.vip, 80, nil, n.second)
			src, dst := hostPort(n.pod, 40000), hostPort(n.vip, 80)
			again.exchange(again.first, rule.TCP, src, dst, again.other, src.Addr())
			id := again.serve(rule.TCP, n.vip, 80, nil, n.far)
			again.moves(src, dst, again.uplink)
			again.expect(n.T, ok, &cnat.CnatTranslationDel{ID: id})
			again.moves(src, dst, 0)
		}},
		{"backends share connections, and by maglev a client stays with one", func(n *cnatNode) {
			n.serve(rule.TCP, n.vip, 80, nil, n.second, n.far)
			n.serve(rule.TCP, n.vip, 81, func(t *cnat.CnatTranslation) {
				t.LbType, t.FlowHashConfig = cnat.CNAT_LB_TYPE_MAGLEV, 1
			}, n.second, n.far)
			seen := map[uint16]map[netip.AddrPort]bool{80: {}, 81: {}}
			for port, backends := range seen {
				for i := range uint16(40) {
					got, found := n.send(n.first, rule.TCP, syn, hostPort(n.pod, 41000+i), hostPort(n.vip, port))
					if !found {
						n.Errorf("connection %d to port %d got lost", i, port)
					}
					backends[got.dst] = true
				}
			}
			check(n, "backends of port 80", 2, len(seen[80]))
			check(n, "backends of port 81", 1, len(seen[81]))
		}},
		{"other ports of a real address, and those of one that is deleted, follow the routes", func(n *cnatNode) {
			path, prefix := via(n.uplink, [4]byte{}), "10.96.0.0/16"
			path.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP4
			if n.ip6 {
				path.Proto, prefix = fib_types.FIB_API_PATH_NH_PROTO_IP6, "fd00:96::/112"
			}
			id := n.serve(rule.TCP, n.vip, 80, func(t *cnat.CnatTranslation) { t.IsRealIP = 1 }, n.second)
			n.expect(n.T, ok, route(n.T, prefix, path))
			src, other := hostPort(n.pod, 40000), hostPort(n.vip, 81)
			n.exchange(n.first, rule.TCP, src, hostPort(n.vip, 80), n.other, src.Addr())
			unchanged := func(dst netip.AddrPort, port uint16) {
				n.Helper()
				from := hostPort(n.pod, port)
				if got, found := n.send(n.first, rule.TCP, syn, from, dst); !found || got.port != n.uplink || got.src != from || got.dst != dst {
					n.Errorf("to %s: left %t through %d as %s > %s", dst, found, got.port, got.src, got.dst)
				}
			}
			unchanged(other, 40001)
			n.expect(n.T, ok, &cnat.CnatTranslationDel{ID: id})
			unchanged(other, 40002)
			unchanged(hostPort(n.vip, 80), 40003)
		}},
		{"a real address below a route that answers with ICMP", func(n *cnatNode) {
			says, prefix := n.version(n).cnat, "10.96.0.0/16"
			path := via(none, [4]byte{})
			path.Type, path.Proto = fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_NH_PROTO_IP4
			if n.ip6 {
				path.Proto, prefix = fib_types.FIB_API_PATH_NH_PROTO_IP6, "fd00:96::/112"
			}
			n.expect(n.T, ok, route(n.T, prefix, path))
			if says.crashesBelowICMP {
				realAddress := translation(n.vip, n.second)
				realAddress.Translation.IsRealIP = 1
				realvpp.NewRaw(n, n.Socket()).Send(n, realAddress)
				n.WaitDead(n)
				return
			}
			n.serve(rule.TCP, n.vip, 80, func(t *cnat.CnatTranslation) { t.IsRealIP = 1 }, n.second)
			n.exchange(n.first, rule.TCP, hostPort(n.pod, 40004), hostPort(n.vip, 80), n.other, netip.MustParseAddr(n.pod))
			n.lost(n.first, rule.TCP, hostPort(n.pod, 40005), hostPort(n.vip, 81))
		}},
		{"by maglev few connections would choose another backend when one comes", func(n *cnatNode) {
			choices := func(n *cnatNode, backends ...string) map[uint16]netip.AddrPort {
				n.serve(rule.TCP, n.vip, 80, func(t *cnat.CnatTranslation) { t.LbType = cnat.CNAT_LB_TYPE_MAGLEV }, backends...)
				chosen := map[uint16]netip.AddrPort{}
				for port := uint16(41000); port < 41060; port++ {
					got, _ := n.send(n.first, rule.TCP, syn, hostPort(n.pod, port), hostPort(n.vip, 80))
					chosen[port] = got.dst
				}
				return chosen
			}
			before := choices(n, n.second, n.far)
			n.Crash(n)
			n.waitDown(n)
			n.Restart(n)
			n.waitUp(n)
			shares, moved := map[string]int{}, 0
			for port, now := range choices(newCNATNode(n.T, n.rig, n.family), n.second, n.far, n.outside) {
				if shares[now.Addr().String()]++; now != before[port] && now.Addr().String() != n.outside {
					moved++
				}
			}
			if moved > 6 || shares[n.second] < 10 || shares[n.far] < 10 || shares[n.outside] < 10 {
				n.Errorf("of 60 connections %d would choose another of the backends that stay, shares %v", moved, shares)
			}
		}},
		{"the sessions of a connection", func(n *cnatNode) {
			n.serve(rule.TCP, n.vip, 80, nil, n.second)
			src, dst := hostPort(n.pod, 40000), hostPort(n.vip, 80)
			backend := n.exchange(n.first, rule.TCP, src, dst, n.other, src.Addr())
			if !n.version(n).cnat.sessionDetails {
				if err := n.link.Dump(n.Context(), &cnat.CnatSessionDump{}, nil); !errors.Is(err, link.ErrUnsupported) {
					n.Errorf("sessions: %v", err)
				}
				return
			}
			got := map[string]bool{}
			for _, d := range dump[*cnat.CnatSessionDetails](n, n.rig, &cnat.CnatSessionDump{}) {
				s := d.Session
				got[fmt.Sprintf("%s:%d > %s:%d to %s:%d at %d", s.Src.Addr, s.Src.Port, s.Dst.Addr, s.Dst.Port, s.New.Addr, s.New.Port, s.Location)] = true
			}
			text := func(a netip.AddrPort) string { return fmt.Sprintf("%s:%d", a.Addr(), a.Port()) }
			check(n, "sessions", map[string]bool{
				fmt.Sprintf("%s > %s to %s at 0", text(src), text(dst), text(backend)): true,
				fmt.Sprintf("%s > %s to %s at 1", text(backend), text(src), text(src)): true,
			}, got)
		}},
	} {
		for _, f := range families {
			name := "cnat packets/IPv4/" + c.name
			if f.ip6 {
				name = "cnat packets/IPv6/" + c.name
			}
			cases = append(cases, contractCase{name, func(t *testing.T, v *rig) { c.run(newCNATNode(t, v, f)) }})
		}
	}
	return cases
}()
