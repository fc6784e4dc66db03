package interfaces

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// TestOtherProtocols: an interface through which packets enter that are not TCP, UDP or ICMP is
// told with the reason.
func TestOtherProtocols(t *testing.T) {
	up := func(index uint32, name, device string, addresses ...string) RawInterface {
		i := RawInterface{Index: index, Name: name, Device: device, AdminUp: true, LinkUp: true}
		for _, a := range addresses {
			i.Addresses = append(i.Addresses, netip.MustParsePrefix(a))
		}
		return i
	}
	uplink, tap, pod := up(1, "uplink", "dpdk", "192.0.2.1/24"), up(2, "tap0", "virtio", "169.254.0.1/30"), up(3, "pod", "memif", "10.1.1.1/32")
	leads := func(index uint32, prefix string) Target {
		return Target{Prefix: netip.MustParsePrefix(prefix), Interfaces: []uint32{index}}
	}
	down := up(4, "gre0", "GRE", "10.9.0.1/30")
	down.AdminUp = false
	const tunnel = "the packets of tunnel ipip0"
	for name, c := range map[string]struct {
		more  []RawInterface
		input Input
		want  map[string]string
	}{
		"nothing":              {want: map[string]string{}},
		"seen":                 {input: Input{OtherProtocols: map[uint32]bool{3: true}}, want: map[string]string{"pod": "VPP has received such packets"}},
		"seen where no client": {more: []RawInterface{down}, input: Input{OtherProtocols: map[uint32]bool{4: true}}, want: map[string]string{}},
		"a pod says so": {
			input: Input{Pods: []*messages.Pod{{Namespace: "default", Name: "amf", Addresses: []string{"10.1.1.2"}, OtherProtocols: true}}},
			want:  map[string]string{"pod": "pod default/amf says so"},
		},
		"a tunnel of IPIP":      {more: []RawInterface{up(4, "ipip0", "IPIP", "10.9.0.1/30")}, want: map[string]string{"uplink": tunnel}},
		"a tunnel of VXLAN":     {more: []RawInterface{up(4, "vxlan0", "VXLAN", "10.9.0.1/30")}, want: map[string]string{}},
		"a tunnel that is down": {more: []RawInterface{down}, want: map[string]string{}},
	} {
		raw := Raw{
			Interfaces: append([]RawInterface{uplink, tap, pod}, c.more...), Default4: leads(1, "0.0.0.0/0"),
			Targets: map[netip.Addr]Target{netip.MustParseAddr("10.1.1.2"): leads(3, "10.1.1.2/32")},
		}
		if c.input.Pods == nil {
			c.input.Pods = []*messages.Pod{{Namespace: "default", Name: "amf", Addresses: []string{"10.1.1.2"}}}
		}
		got := map[string]string{}
		for _, i := range Derive(raw, c.input).GetInterfaces() {
			if why := i.GetOtherProtocols(); why != "" {
				got[i.GetName()] = why
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
