package main

import (
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
)

// TestPackets: all packets of a stream reach the network, each through the nodes of its features
// once; only those of new flows take the slow path.
func TestPackets(t *testing.T) {
	const services, packets = 20, 100
	p, err := prepare(t.Context(), t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	if p.vpp == "" {
		t.Skip("there is no VPP: a simulated one forwards no packets")
	}
	n, err := newNode(t.Context(), p, options{source: sourceFiles}, services)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	out := newFigures()
	if err := errors.Join(n.startVPP(), n.setUp(), n.beforeAgent(services, out)); err != nil {
		t.Fatal(err)
	}
	if err := n.start("start", services, out); err != nil {
		t.Fatal(err)
	}
	out = newFigures()
	if err := n.packets(options{}, services, out); err != nil {
		t.Fatal(err)
	}
	if all := out.all(); len(all) != 7*4 {
		t.Errorf("%d figures: %+v", len(all), all)
	}
	path := filepath.Join(n.dir, "test.pcap")
	row := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr(clusterIP(i%services)), 80)
	}
	for _, c := range []struct {
		to     func(int) netip.AddrPort
		flags  byte
		passed map[string]float64
	}{
		{row, syn, map[string]float64{"acl-plugin-in-ip4-fa": packets, "nat44-ed-classify": packets, "nat44-ed-out2in": packets, "nat44-ed-out2in-slowpath": packets, "cnat-input-ip6": 0}},
		{row, ack, map[string]float64{"acl-plugin-in-ip4-fa": packets, "nat44-ed-classify": packets, "nat44-ed-out2in": packets, "nat44-ed-out2in-slowpath": 0}},
		{sixAddress("fd10::", 80), syn, map[string]float64{"acl-plugin-in-ip6-fa": packets, "cnat-input-ip6": packets, "cnat-output-ip6": packets, "nat44-ed-classify": 0}},
	} {
		if err := writeCapture(path, c.flags, packets, 60_000, c.to); err != nil {
			t.Fatal(err)
		}
		nodes, err := n.stream(path, c.to(0).Addr().Is6(), packets)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range c.passed {
			if got := nodes[name].packets; got != want {
				t.Errorf("%s, flags %d: %.0f of %d packets through %s, want %.0f", c.to(0), c.flags, got, packets, name, want)
			}
		}
	}
	if err := writeCapture(path, syn, packets, 60_000, func(int) netip.AddrPort { return netip.MustParseAddrPort("10.111.9.9:80") }); err != nil {
		t.Fatal(err)
	}
	if _, err := n.stream(path, false, packets); err == nil {
		t.Error("packets to no service have reached the network")
	}
}

// TestCost: a node counts for each packet of the stream, whatever share of them crosses it.
func TestCost(t *testing.T) {
	nodes := graph(`Time 1.0, 10 sec internal node vector rate 255.75 loops/sec 1718754.83
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call
fib-walk                       "any wait"                0               0               1          1.51e4            0.00
ip4-input                        active                  4            1000               0          2.08e1          250.00
nat44-ed-out2in-slowpath         active                  4             500               0          1.00e3          125.00
pg-input                        disabled                 4            1000               0          8.32e1          250.00
`)
	if all, ours := cost(nodes, 1000); len(nodes) != 2 || all != 520.8 || ours != 500 {
		t.Errorf("%v: %v, %v", nodes, all, ours)
	}
}
