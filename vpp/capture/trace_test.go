package capture

import (
	"net/netip"
	"testing"
)

// dropped is what VPP 25.10 prints of a packet without a route.
const dropped = `------------------- Start of thread 1 vpp_wk_0 -------------------
Packet 1

00:00:00:024328: pg-input
  stream 0, 36 bytes, sw_if_index 1, next_node ip4-input
00:00:00:024347: ip4-input
  UDP: 192.168.16.9 -> 10.96.0.99
    tos 0x00, ttl 64, length 36, checksum 0x9f55 dscp CS0 ecn NON_ECN
  UDP: 40000 -> 80
    length 16, checksum 0x0000
00:00:00:024432: ip4-drop
    fib:0 adj:0 flow:0x00000000
  UDP: 192.168.16.9 -> 10.96.0.99
  UDP: 40000 -> 80
00:00:00:024436: error-drop
  rx:pg0
00:00:00:024532: drop
  null-node: blackholed packets

Packet 2

00:00:00:024328: virtio-input
00:00:00:024347: ip6-input
  TCP: fd00::9 -> fd00:96::1
  TCP: 40000 -> 443
------------------- Start of thread 2 vpp_wk_1 -------------------
No packets in trace buffer
`

// TestParse: the verdict of a packet, and its frontend.
func TestParse(t *testing.T) {
	packets := Parse(dropped)
	if len(packets) != 2 {
		t.Fatalf("%+v", packets)
	}
	one, two := packets[0], packets[1]
	if one.Source != "192.168.16.9:40000" || one.Verdict != "dropped: null-node: blackholed packets" || len(one.Steps) != 5 {
		t.Errorf("%+v", one)
	}
	if !one.Of(netip.MustParseAddrPort("10.96.0.99:80"), "UDP") || one.Of(netip.MustParseAddrPort("10.96.0.99:80"), "TCP") || one.Of(netip.MustParseAddrPort("10.96.0.9:980"), "UDP") {
		t.Error("it belongs to another frontend")
	}
	if two.Destination != "[fd00:96::1]:443" || two.Verdict != "the trace ends before the packet does" || !two.Of(netip.MustParseAddrPort("[fd00:96::1]:443"), "TCP") {
		t.Errorf("%+v", two)
	}
}

// FuzzParse: no text makes it fail.
func FuzzParse(f *testing.F) {
	f.Add(dropped)
	f.Fuzz(func(_ *testing.T, text string) { Parse(text) })
}

// TestWords: a prefix, a suffix, and a node that is not known.
func TestWords(t *testing.T) {
	for node, want := range map[string]string{
		"tap3-tx": "leaves VPP", "nat44-out2in-worker-handoff": "NAT: hands the packet to the worker with its session", "memif-input": "enters VPP", "other": "",
	} {
		if got := words(node); got != want {
			t.Errorf("%s: %q, want %q", node, got, want)
		}
	}
}
