package interfaces

import (
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/troupe-vpp/troupe/messages"
)

// TestFault: which bridge domains keep services with endpoints behind them from being served.
func TestFault(t *testing.T) {
	const bvi = 3
	for _, tt := range []struct {
		name string
		// groups are those of the members, by their interfaces from 10 on.
		groups   []uint8
		network  string
		proxy    string // "low high" of the virtual interface; "" = none
		pods     []string
		loopback string
		want     []string // in this order; nil = no fault
	}{
		{"one pod", []uint8{0}, "10.1.0.1/17", "", []string{"10.1.1.2"}, "10.9.9.9", nil},
		{"two pods", []uint8{0, 0}, "10.1.0.1/17", "10.1.0.2 10.1.127.254", []string{"10.1.1.2", "10.1.2.2"}, "10.9.9.9", []string{"put a, b into one split-horizon group"}},
		{"IPv6", []uint8{0, 0}, "fd01::1/64", "", []string{"fd01::2", "fd01::3"}, "10.9.9.9", []string{"put a, b into one"}},
		{"different groups", []uint8{1, 2}, "10.1.0.1/17", "10.1.0.2 10.1.127.254", []string{"10.1.1.2", "10.1.2.2"}, "10.9.9.9", []string{"put a, b into one"}},
		{"one group", []uint8{1, 1}, "10.1.0.1/17", "10.1.0.2 10.1.127.254", []string{"10.1.1.2", "10.1.2.2"}, "10.9.9.9", nil},
		{"one group without proxy ARP", []uint8{1, 1}, "10.1.0.1/17", "", []string{"10.1.1.2", "10.1.2.2"}, "10.9.9.9", []string{"need proxy ARP (set interface proxy-arp bvi0 enable"}},
		{"one group, proxy ARP for some", []uint8{1, 1}, "10.1.0.1/17", "10.1.0.2 10.1.1.9", []string{"10.1.1.2", "10.1.2.2"}, "10.9.9.9", []string{"among them 10.1.2.2"}},
		{"loopback inside", []uint8{1, 1}, "10.1.0.1/17", "10.1.0.2 10.1.127.254", []string{"10.1.1.2", "10.1.2.2"}, "10.1.127.254", []string{"the NAT loopback 10.1.127.254 is inside of the network 10.1.0.0/17 of bvi0"}},
		{"loopback inside, one pod", []uint8{0}, "10.1.0.1/17", "", []string{"10.1.1.2"}, "10.1.127.254", []string{"the NAT loopback"}},
		{"loopback is VPP's own address", []uint8{0}, "10.1.0.1/17", "", []string{"10.1.1.2"}, "10.1.0.1", nil},
		{"without NAT44", []uint8{1, 1}, "10.1.0.1/17", "10.1.0.2 10.1.127.254", []string{"10.1.1.2", "10.1.2.2"}, "", nil},
		{"all of it", []uint8{0, 1}, "10.1.0.1/17", "", []string{"10.1.1.2", "10.1.2.2"}, "10.1.127.254", []string{"answer each other", "need proxy ARP", "the NAT loopback"}},
		{"pods with a /32 have no network", []uint8{0, 0}, "10.1.0.1/32", "", []string{"10.1.1.2", "10.1.2.2"}, "10.1.127.254", nil},
		{"no pods: an uplink", []uint8{0, 0}, "10.1.0.1/17", "", nil, "10.1.127.254", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtual := up(bvi, "bvi0", "BVI", tt.network)
			virtual.BVI = true
			raw := Raw{Interfaces: []RawInterface{virtual}, Targets: map[netip.Addr]Target{}, Bridges: []Bridge{{ID: 5, Virtual: bvi}}}
			for k, group := range tt.groups {
				raw.Interfaces = append(raw.Interfaces, up(uint32(10+k), string(rune('a'+k)), "af_packet"))
				raw.Bridges[0].Members = append(raw.Bridges[0].Members, Member{Index: uint32(10 + k), Group: group})
			}
			if low, high, found := strings.Cut(tt.proxy, " "); found {
				raw.Interfaces[0].ProxyARP = true
				raw.ProxyARP = []Range{{netip.MustParseAddr(low), netip.MustParseAddr(high)}}
			}
			in := Input{}
			if tt.loopback != "" {
				in.Loopback = netip.MustParseAddr(tt.loopback)
			}
			for _, address := range tt.pods {
				raw.Targets[netip.MustParseAddr(address)] = Target{Prefix: netip.MustParsePrefix(tt.network).Masked(), Interfaces: []uint32{bvi}}
				in.Pods = append(in.Pods, &messages.Pod{Namespace: "n", Name: "p" + address, Addresses: []string{address}})
			}
			got := ""
			for _, i := range Derive(raw, in).GetInterfaces() {
				if i.GetSwIfIndex() != bvi && i.GetFault() != "" {
					t.Errorf("%s has the fault %q", i.GetName(), i.GetFault())
				}
				got += i.GetFault()
			}
			rest := got
			for _, want := range tt.want {
				_, after, found := strings.Cut(rest, want)
				if rest = after; !found {
					t.Errorf("fault %q, want %q in it", got, want)
				}
			}
			if tt.want == nil && got != "" {
				t.Errorf("fault %q, want none", got)
			}
		})
	}
}

// TestDiscoverBridges: a fault is found, and is gone, without any other change of VPP.
func TestDiscoverBridges(t *testing.T) {
	vpp := node()
	vpp.routes = append(vpp.routes, route("10.3.0.0/24", to(6)))
	member := func(index, group uint8) l2.BridgeDomainSwIf {
		return l2.BridgeDomainSwIf{SwIfIndex: interface_types.InterfaceIndex(index), Shg: group}
	}
	vpp.members = []l2.BridgeDomainSwIf{member(8, 0), member(6, 0), member(4, 0)}
	in := Input{Pods: []*messages.Pod{{Namespace: "n", Name: "a", Addresses: []string{"10.3.0.2"}}, {Namespace: "n", Name: "b", Addresses: []string{"10.3.0.3"}}}}
	reader := &Reader{}
	fault := func() string {
		t.Helper()
		set, err := reader.Discover(t.Context(), vpp, in)
		if err != nil {
			t.Fatal(err)
		}
		return set.GetInterfaces()[6].GetFault()
	}
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "put vxlan_tunnel0, tap9 into one split-horizon group"},
		{func() { vpp.members = []l2.BridgeDomainSwIf{member(8, 1), member(6, 0), member(4, 1)} }, "need proxy ARP"},
		{func() { vpp.interfaces[6].ProxyARP = true }, "need proxy ARP"},
		{func() {
			vpp.ranges = []arp.ProxyArp{{Low: ip_types.IP4Address{10, 3, 0, 2}, Hi: ip_types.IP4Address{10, 3, 0, 9}}}
		}, ""},
	} {
		step.change()
		for range 5 { // complete and quiet rounds
			if got := fault(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
				t.Errorf("fault %q, want %q", got, step.want)
			}
		}
	}
}
