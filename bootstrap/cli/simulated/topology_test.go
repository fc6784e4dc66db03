package simulated

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// FuzzTopology: no file stops the simulator; one that is taken is written and read as the same, and
// can be connected or is refused with an error.
func FuzzTopology(f *testing.F) {
	f.Add([]byte("interfaces:\n- {name: up, addresses: [192.168.16.1/24], gateway: 192.168.16.254}\n- {name: h, down: true}\npods:\n- {name: a, address: 10.1.1.2}\n" +
		"routes:\n- {to: 10.2.0.0/16, via: 192.168.16.3}\n- {to: fd00::/8, interface: up}\n"))
	f.Add([]byte("interfaces: [{name: up, addresses: ['fe80::1%x/64', 0.0.0.0/0]}, {name: up}]\npods: [{name: up, address: '::'}]"))
	f.Add([]byte("routes: [{to: 10.0.0.0/8}]\nx: 1\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		parsed, err := parseTopology(content)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error that says nothing")
			}
			return
		}
		written, err := yaml.Marshal(parsed)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTopology(written)
		if err != nil {
			t.Fatalf("written and read back: %v\n%s", err, written)
		}
		if first, second := asText(t, parsed), asText(t, again); first != second {
			t.Fatalf("changed by writing and reading:\n%s", cmp.Diff(first, second))
		}
		vpp := simulator.New(simulator.Options{})
		_ = parsed.build(vpp) // a topology that cannot be is an error
		if err := vpp.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func asText(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTopologyForwards: packets of the topology find their way.
func TestTopologyForwards(t *testing.T) {
	shop, err := parseTopology([]byte(`
interfaces: [{name: uplink0, addresses: [192.168.16.1/24], gateway: 192.168.16.254}]
pods: [{name: tap-web, address: 10.1.1.3}]
routes: [{to: 10.1.2.0/24, via: 192.168.16.2, interface: uplink0}]
`))
	if err != nil {
		t.Fatal(err)
	}
	vpp := simulator.New(simulator.Options{})
	if err := shop.build(vpp); err != nil {
		t.Fatal(err)
	}
	for dst, want := range map[string]string{"10.1.1.3": "tap-web", "10.1.2.9": "uplink0", "8.8.8.8": "uplink0"} {
		v := vpp.Send(simulator.Packet{In: "uplink0", Src: netip.MustParseAddrPort("192.168.16.77:4000"), Dst: netip.AddrPortFrom(netip.MustParseAddr(dst), 80), Proto: simulator.ProtoTCP})
		if v.Out != want {
			t.Errorf("a packet to %s leaves by %q, want %q (%s)", dst, v.Out, want, v)
		}
	}
}
