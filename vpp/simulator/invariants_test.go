package simulator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// checkInvariants fails when the tables of the NAT model contradict each
// other.
func checkInvariants(t *rapid.T, n *nat44) {
	for key, index := range n.o2i {
		mp, used := n.mappings.get(index)
		if !used || mp.external != key.at || mp.proto != key.proto {
			t.Fatalf("key %v points to %+v (used %t)", key, mp, used)
		}
	}
	if len(n.o2i) != n.mappings.len() {
		t.Fatalf("%d keys for %d mappings", len(n.o2i), n.mappings.len())
	}
	queued := n.lru.tcpTransitory.Len() + n.lru.tcpEstablished.Len() + n.lru.udp.Len() + n.lru.icmp.Len() + n.lru.other.Len()
	if queued != n.sessions.len() {
		t.Fatalf("%d sessions, %d in LRU lists", n.sessions.len(), queued)
	}
	for key, s := range n.flows {
		if live, used := n.sessions.get(s.index); !used || live != s {
			t.Fatalf("flow %v of a dead session", key)
		}
		if key != s.i2o.match && key != s.o2i.match {
			t.Fatalf("flow %v is not of its session %+v", key, s)
		}
	}
	peers := 0
	for at, sessions := range n.byBackend {
		for s := range sessions {
			if live, used := n.sessions.get(s.index); !used || live != s || s.inside != at {
				t.Fatalf("dead session under backend %s", at)
			}
			peers++
		}
	}
	if peers != n.sessions.len() {
		t.Fatalf("%d sessions, %d under their backends", n.sessions.len(), peers)
	}
	for key, a := range n.affinities {
		if !a.owner.sticky[key] {
			t.Fatalf("affinity %v is not known to its mapping", key)
		}
	}
}

// TestTablesStayConsistent drives the NAT model with random changes and
// packets and checks its tables after each.
func TestTablesStayConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := &fakeClock{now: time.Unix(0, 0)}
		v := New(Options{Clock: clock.Now})
		defer func() { _ = v.Close() }()
		pods := []netip.Addr{clientPod, backendA, backendB}
		for i, addr := range pods {
			if _, err := v.AddPod(fmt.Sprintf("p%d", i+1), addr); err != nil {
				t.Fatal(err)
			}
		}
		m := v.inc.model
		n := m.nat
		n.enable(natConfig{sessions: 12})
		n.setForwarding(true)
		n.addAddress(twiceIP, none, true)
		for i := uint32(1); i <= 3; i++ {
			n.addInterface(i, true)
			n.addInterface(i, false)
		}
		vip := func() netip.AddrPort {
			return at(netip.AddrFrom4([4]byte{10, 96, 0, rapid.Uint8Range(1, 3).Draw(t, "vip")}), 80)
		}
		pod := func() netip.Addr { return rapid.SampledFrom(pods).Draw(t, "pod") }
		someBackend := func() backend {
			return backend{at: at(pod(), uint16(8000+rapid.IntRange(0, 1).Draw(t, "port"))), probability: rapid.Uint8Range(1, 20).Draw(t, "weight")}
		}
		proto := func() uint8 { return rapid.SampledFrom([]uint8{ProtoTCP, ProtoUDP}).Draw(t, "proto") }
		flags := func() mappingFlags {
			return mapOut2inOnly | rapid.SampledFrom([]mappingFlags{0, mapTwice, mapSelfTwice}).Draw(t, "flags")
		}
		actions := map[string]func(*rapid.T){
			"add row": func(t *rapid.T) {
				locals := []backend{someBackend(), someBackend(), someBackend()}
				n.addLB(&mapping{flags: flags(), external: vip(), proto: proto(), affinity: uint32(rapid.IntRange(0, 1).Draw(t, "affinity")) * 30}, locals)
			},
			"delete row": func(*rapid.T) { n.delLB(vip(), proto(), mapOut2inOnly) },
			"add backend": func(*rapid.T) {
				n.addLocal(vip(), proto(), someBackend())
			},
			"delete backend": func(*rapid.T) { n.delLocal(vip(), proto(), someBackend()) },
			"add simple": func(*rapid.T) {
				n.addMapping(staticRequest{external: vip(), local: someBackend().at, proto: proto(), flags: flags(), swIf: none})
			},
			"delete simple": func(*rapid.T) {
				n.delMapping(staticRequest{external: vip(), proto: proto(), flags: mapOut2inOnly, swIf: none})
			},
			"packet": func(t *rapid.T) {
				from := pod()
				p := tcp(from, uint16(rapid.IntRange(1, 9).Draw(t, "sport")), vip())
				p.Proto = proto()
				p.Flags = rapid.SampledFrom([]TCPFlags{SYN, ACK, FIN | ACK, RST}).Draw(t, "tcp flags")
				if verdict := v.Send(p); verdict.Action == Delivered && rapid.Bool().Draw(t, "answer") {
					v.Reply(verdict)
				}
			},
			"time": func(t *rapid.T) {
				clock.now = clock.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			},
			"delete session": func(*rapid.T) {
				for key := range n.flows {
					n.delFlow(key)
					break
				}
			},
			"delete pool": func(*rapid.T) { n.delAddress(twiceIP, true) },
			"add pool":    func(*rapid.T) { n.addAddress(twiceIP, none, true) },
			"lose role": func(t *rapid.T) {
				n.delInterface(uint32(rapid.IntRange(1, 3).Draw(t, "if")), rapid.Bool().Draw(t, "in"))
			},
			"gain role": func(t *rapid.T) {
				n.addInterface(uint32(rapid.IntRange(1, 3).Draw(t, "if")), rapid.Bool().Draw(t, "in"))
			},
			"forward off": func(*rapid.T) { n.setForwarding(false) },
			"forward on":  func(*rapid.T) { n.setForwarding(true) },
			"disable":     func(*rapid.T) { n.disable(); n.enable(natConfig{sessions: 12}) },
			"": func(t *rapid.T) {
				if m.cause != "" {
					t.Skip("VPP died: " + m.cause)
				}
				checkInvariants(t, n)
			},
		}
		t.Repeat(actions)
	})
}
