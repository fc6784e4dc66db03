package nat

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// checkInvariants fails when the tables of the NAT model contradict each other.
func checkInvariants(t *rapid.T, n *Plugin) {
	for key, index := range n.o2i {
		mp, used := n.Mappings.Get(index)
		if !used || mp.External != key.at || mp.Proto != key.proto {
			t.Fatalf("key %v points to %+v (used %t)", key, mp, used)
		}
	}
	if len(n.o2i) != n.Mappings.Len() {
		t.Fatalf("%d keys for %d mappings", len(n.o2i), n.Mappings.Len())
	}
	queued := n.lru.tcpTransitory.Len() + n.lru.tcpEstablished.Len() + n.lru.udp.Len() + n.lru.icmp.Len() + n.lru.other.Len()
	if queued != n.Sessions.Len() {
		t.Fatalf("%d sessions, %d in LRU lists", n.Sessions.Len(), queued)
	}
	for key, s := range n.flows {
		if live, used := n.Sessions.Get(s.index); !used || live != s {
			t.Fatalf("flow %v of a dead session", key)
		}
		if key != s.i2o.match && key != s.o2i.match {
			t.Fatalf("flow %v is not of its session %+v", key, s)
		}
	}
	peers := 0
	for at, sessions := range n.byBackend {
		for s := range sessions {
			if live, used := n.Sessions.Get(s.index); !used || live != s || s.Inside != at {
				t.Fatalf("dead session under backend %s", at)
			}
			peers++
		}
	}
	if peers != n.Sessions.Len() {
		t.Fatalf("%d sessions, %d under their backends", n.Sessions.Len(), peers)
	}
	for key, a := range n.affinities {
		if !a.owner.sticky[key] {
			t.Fatalf("affinity %v is not known to its mapping", key)
		}
	}
}

// TestTablesStayConsistent drives the NAT model with random changes and packets and checks its
// tables after each.
func TestTablesStayConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := &fakeClock{now: time.Unix(0, 0)}
		pods := []netip.Addr{clientPod, backendA, backendB}
		n := newNode(clock.Now, pods...)
		n.Enable(Config{Sessions: 12})
		n.SetForwarding(true)
		n.addAddress(twiceIP, vnet.None, true)
		for i := uint32(1); i <= 3; i++ {
			n.AddInterface(i, true)
			n.AddInterface(i, false)
		}
		vip := func() netip.AddrPort {
			return at(netip.AddrFrom4([4]byte{10, 96, 0, rapid.Uint8Range(1, 3).Draw(t, "vip")}), 80)
		}
		pod := func() netip.Addr { return rapid.SampledFrom(pods).Draw(t, "pod") }
		someBackend := func() Backend {
			return Backend{At: at(pod(), uint16(8000+rapid.IntRange(0, 1).Draw(t, "port"))), Probability: rapid.Uint8Range(1, 20).Draw(t, "weight")}
		}
		proto := func() uint8 { return rapid.SampledFrom([]uint8{vnet.ProtoTCP, vnet.ProtoUDP}).Draw(t, "proto") }
		flags := func() Flags {
			return MapOut2inOnly | rapid.SampledFrom([]Flags{0, MapTwice, MapSelfTwice}).Draw(t, "flags")
		}
		actions := map[string]func(*rapid.T){
			"add row": func(t *rapid.T) {
				locals := []Backend{someBackend(), someBackend(), someBackend()}
				n.AddLB(&Mapping{Flags: flags(), External: vip(), Proto: proto(), Affinity: uint32(rapid.IntRange(0, 1).Draw(t, "affinity")) * 30}, locals)
			},
			"delete row": func(*rapid.T) { n.DelLB(vip(), proto(), MapOut2inOnly) },
			"add backend": func(*rapid.T) {
				n.AddLocal(vip(), proto(), someBackend())
			},
			"delete backend": func(*rapid.T) { n.DelLocal(vip(), proto(), someBackend()) },
			"add simple": func(*rapid.T) {
				n.ChangeMapping(Request{External: vip(), Local: someBackend().At, Proto: proto(), Flags: flags(), SwIf: vnet.None}, true)
			},
			"delete simple": func(*rapid.T) {
				n.ChangeMapping(Request{External: vip(), Proto: proto(), Flags: MapOut2inOnly, SwIf: vnet.None}, false)
			},
			"packet": func(t *rapid.T) {
				from := pod()
				p := vnet.Packet{InIndex: uint32(1 + slices.Index(pods, from)), Src: at(from, uint16(rapid.IntRange(1, 9).Draw(t, "sport"))), Dst: vip(), Proto: proto()}
				p.Flags = rapid.SampledFrom([]vnet.TCPFlags{vnet.SYN, vnet.ACK, vnet.FIN | vnet.ACK, vnet.RST}).Draw(t, "tcp flags")
				if out, back := cross(n, p); out != vnet.None && rapid.Bool().Draw(t, "answer") {
					cross(n, back)
				}
			},
			"time": func(t *rapid.T) {
				clock.now = clock.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			},
			"delete session": func(*rapid.T) {
				for key := range n.flows {
					n.DelFlow(key)
					break
				}
			},
			"delete pool": func(*rapid.T) { n.delAddress(twiceIP, true) },
			"add pool":    func(*rapid.T) { n.addAddress(twiceIP, vnet.None, true) },
			"lose role": func(t *rapid.T) {
				n.DelInterface(uint32(rapid.IntRange(1, 3).Draw(t, "if")), rapid.Bool().Draw(t, "in"))
			},
			"gain role": func(t *rapid.T) {
				n.AddInterface(uint32(rapid.IntRange(1, 3).Draw(t, "if")), rapid.Bool().Draw(t, "in"))
			},
			"forward off": func(*rapid.T) { n.SetForwarding(false) },
			"forward on":  func(*rapid.T) { n.SetForwarding(true) },
			"disable":     func(*rapid.T) { n.Disable(); n.Enable(Config{Sessions: 12}) },
			"": func(t *rapid.T) {
				if n.net.Cause != "" {
					t.Skip("VPP died: " + n.net.Cause)
				}
				checkInvariants(t, n)
			},
		}
		t.Repeat(actions)
	})
}
