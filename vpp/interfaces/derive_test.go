package interfaces

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

func TestUplink(t *testing.T) {
	route := func(indices ...uint32) Target {
		return Target{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Interfaces: indices}
	}
	lent := up(4, "unnumbered", "virtio")
	lent.Unnumbered, lent.Lender = true, 2
	orphan := up(5, "orphan", "virtio")
	orphan.Unnumbered, orphan.Lender = true, 77
	interfaces := []RawInterface{
		{Index: 0, Name: "local0"},
		up(1, "a", "virtio", "10.0.0.1/24", "fe80::1/64"), up(2, "b", "virtio", "10.0.1.1/24"), up(3, "c", "virtio", "fd00::1/64"), lent, orphan,
	}
	tests := []struct {
		name      string
		v4, v6    Target
		want      *uint32
		addresses []string
	}{
		{"none", Target{}, Target{}, nil, nil},
		{"IPv4", route(1), Target{}, proto.Uint32(1), []string{"10.0.0.1/24"}},
		{"IPv6 only", Target{}, route(3), proto.Uint32(3), []string{"fd00::1/64"}},
		{"IPv4 before IPv6", route(2), route(3), proto.Uint32(2), []string{"10.0.1.1/24"}},
		{"several paths", route(2, 1), Target{}, proto.Uint32(1), []string{"10.0.0.1/24"}},
		{"interface that went meanwhile", route(9, 2), Target{}, proto.Uint32(2), []string{"10.0.1.1/24"}},
		{"local0 is never one", route(0), route(3), proto.Uint32(3), []string{"fd00::1/64"}},
		{"borrowed address", route(4), Target{}, proto.Uint32(4), []string{"10.0.1.1/24"}},
		{"lender went", route(5), Target{}, proto.Uint32(5), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := Derive(Raw{Interfaces: interfaces, Default4: tt.v4, Default6: tt.v6}, Input{})
			if diff := cmp.Diff(tt.want, set.Uplink); diff != "" {
				t.Errorf("uplink: %s", diff)
			}
			if diff := cmp.Diff(tt.addresses, set.GetNodeAddresses()); diff != "" {
				t.Errorf("addresses: %s", diff)
			}
		})
	}
}

func TestUplinkWithPodsStaysUplink(t *testing.T) {
	raw := Raw{
		Interfaces: []RawInterface{up(1, "nic", "dpdk", "10.0.0.1/24")},
		Default4:   Target{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Interfaces: []uint32{1}},
		Targets:    map[netip.Addr]Target{netip.MustParseAddr("10.0.0.7"): {Prefix: netip.MustParsePrefix("10.0.0.0/24"), Interfaces: []uint32{1}}},
	}
	set := Derive(raw, Input{Pods: []*messages.Pod{{Namespace: "n", Name: "p", Addresses: []string{"10.0.0.7"}}}})
	if i := set.GetInterfaces()[0]; i.GetKind() != messages.InterfaceKind_INTERFACE_UPLINK || len(i.GetPods()) != 1 || !i.GetBackend() {
		t.Errorf("interface = %v", i)
	}
}

// TestLocal: clients are local only on interfaces that are known to lead to this node.
func TestLocal(t *testing.T) {
	leads := func(index uint32, prefix string) Target {
		return Target{Prefix: netip.MustParsePrefix(prefix), Interfaces: []uint32{index}}
	}
	unnumbered := func(index uint32, name string) RawInterface {
		i := up(index, name, "af_packet")
		i.Unnumbered = true
		return i
	}
	bridged := up(9, "loop1", "Loopback", "10.5.0.1/24")
	bridged.BVI = true
	raw := Raw{
		Interfaces: []RawInterface{
			up(1, "nic", "dpdk", "10.0.0.1/24"), up(2, "nic2", "dpdk", "10.9.0.1/24"), unnumbered(3, "pod"), unnumbered(4, "endpoint"),
			unnumbered(5, "vpp-host"), up(6, "tap0", "virtio", "172.30.1.1/30"), up(7, "veth", "af_packet", "169.254.1.1/30"),
			up(8, "ipip0", "ipip", "169.254.2.1/30"), bridged, up(10, "VirtioEthernet0/1", "virtio", "10.8.0.1/24"),
			up(11, "both", "af_packet", "169.254.3.1/30", "10.7.0.1/24"),
		},
		Default4: leads(1, "0.0.0.0/0"),
		Targets: map[netip.Addr]Target{
			netip.MustParseAddr("10.1.1.2"): leads(3, "10.1.1.2/32"), netip.MustParseAddr("10.1.1.3"): leads(4, "10.1.1.3/32"),
			netip.MustParseAddr("10.0.0.1"): leads(5, "10.0.0.1/32"), netip.MustParseAddr("10.0.0.9"): leads(1, "0.0.0.0/0"),
		},
	}
	set := Derive(raw, Input{
		Pods: []*messages.Pod{{Namespace: "n", Name: "p", Addresses: []string{"10.1.1.2"}}}, LocalEndpoints: []string{"10.1.1.3"},
		NodeAddresses: []string{"10.0.0.1", "10.0.0.9", "n1"}, Complete: true,
	})
	var local []string
	for _, i := range set.GetInterfaces() {
		if i.GetLocal() {
			local = append(local, i.GetName())
		}
	}
	if diff := cmp.Diff([]string{"pod", "endpoint", "vpp-host", "tap0", "veth"}, local); diff != "" || !set.GetComplete() {
		t.Errorf("complete %v, local: %s", set.GetComplete(), diff)
	}
}

func TestLoopbackWithPodIsNotInternal(t *testing.T) {
	raw := Raw{
		Interfaces: []RawInterface{up(1, "loop0", "Loopback", "10.1.1.1/24")},
		Targets:    map[netip.Addr]Target{netip.MustParseAddr("10.1.1.2"): {Prefix: netip.MustParsePrefix("10.1.1.0/24"), Interfaces: []uint32{1}}},
	}
	in := Input{Pods: []*messages.Pod{{Namespace: "n", Name: "p", Addresses: []string{"10.1.1.2", "::ffff:10.1.1.2"}}}}
	i := Derive(raw, in).GetInterfaces()[0]
	if i.GetKind() != messages.InterfaceKind_INTERFACE_POD || !i.GetFrontend() || i.GetBackend() || len(i.GetPods()) != 1 {
		t.Errorf("interface = %v", i)
	}
}

// world draws states of VPP and Kubernetes.
func world(t *rapid.T) (Raw, Input) {
	address := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 8).Draw(t, "last byte")) })
	target := rapid.Custom(func(t *rapid.T) Target {
		bits := rapid.SampledFrom([]int{0, 8, 24, 32}).Draw(t, "bits")
		return Target{
			Prefix:     netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), bits).Masked(),
			Interfaces: rapid.SliceOfN(rapid.Uint32Range(0, 6), 0, 3).Draw(t, "paths"),
		}
	})
	iface := rapid.Custom(func(t *rapid.T) RawInterface {
		i := RawInterface{
			Index:      rapid.Uint32Range(0, 6).Draw(t, "index"),
			Device:     rapid.SampledFrom([]string{"virtio", "Loopback", "VXLAN", "dpdk"}).Draw(t, "device"),
			AdminUp:    rapid.Bool().Draw(t, "up"),
			Unnumbered: rapid.Bool().Draw(t, "unnumbered"),
			Lender:     rapid.Uint32Range(0, 6).Draw(t, "lender"),
			BVI:        rapid.Bool().Draw(t, "bvi"),
		}
		for _, a := range rapid.SliceOfN(address, 0, 2).Draw(t, "addresses") {
			i.Addresses = append(i.Addresses, netip.MustParsePrefix(a+"/24"))
		}
		return i
	})
	raw := Raw{
		Interfaces: rapid.SliceOfNDistinct(iface, 0, 7, func(i RawInterface) uint32 { return i.Index }).Draw(t, "interfaces"),
		Targets:    map[netip.Addr]Target{},
		Default4:   target.Draw(t, "default"),
	}
	in := Input{LocalEndpoints: rapid.SliceOfN(address, 0, 5).Draw(t, "endpoints")}
	for k := range rapid.IntRange(0, 5).Draw(t, "pods") {
		in.Pods = append(in.Pods, &messages.Pod{
			Namespace: "n", Name: fmt.Sprintf("p%d", k), HostNetwork: rapid.Bool().Draw(t, "host"),
			Addresses: rapid.SliceOfN(address, 0, 2).Draw(t, "addresses"),
		})
	}
	for _, a := range in.addresses() {
		raw.Targets[a] = target.Draw(t, "target")
	}
	return raw, in
}

func TestDeriveDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, in := world(t)
		want := Derive(raw, in)
		if diff := cmp.Diff(want, Derive(raw, in), protocmp.Transform()); diff != "" {
			t.Fatalf("the same input gave another set: %s", diff)
		}
		mixed, shuffled := raw, in
		mixed.Interfaces = rapid.Permutation(raw.Interfaces).Draw(t, "interfaces")
		mixed.Default4.Interfaces = rapid.Permutation(raw.Default4.Interfaces).Draw(t, "paths")
		shuffled.Pods = rapid.Permutation(in.Pods).Draw(t, "pods")
		shuffled.LocalEndpoints = rapid.Permutation(in.LocalEndpoints).Draw(t, "endpoints")
		if diff := cmp.Diff(want, Derive(mixed, shuffled), protocmp.Transform()); diff != "" {
			t.Fatalf("another order gave another set: %s", diff)
		}
	})
}

func TestDeriveInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, in := world(t)
		set := Derive(raw, in)
		if len(set.GetInterfaces()) != len(raw.Interfaces) {
			t.Fatalf("%d interfaces of %d", len(set.GetInterfaces()), len(raw.Interfaces))
		}
		if !slices.IsSortedFunc(set.GetInterfaces(), func(a, b *messages.Interface) int { return int(a.GetSwIfIndex()) - int(b.GetSwIfIndex()) }) {
			t.Fatal("not ordered by index")
		}
		uplinks := 0
		for _, i := range set.GetInterfaces() {
			internal := i.GetKind() == messages.InterfaceKind_INTERFACE_INTERNAL
			switch {
			case i.GetBackend() && !i.GetFrontend():
				t.Fatalf("backend but no frontend: %v", i)
			case i.GetLocal() && (!i.GetFrontend() || i.GetKind() == messages.InterfaceKind_INTERFACE_UPLINK):
				t.Fatalf("local but no frontend, or the uplink: %v", i)
			case i.GetFrontend() && (internal || !i.GetAdminUp()):
				t.Fatalf("frontend that is down or internal: %v", i)
			case i.GetSwIfIndex() == 0 && !internal:
				t.Fatalf("local0 is %v", i.GetKind())
			case i.GetKind() == messages.InterfaceKind_INTERFACE_UPLINK:
				uplinks++
			}
		}
		if (set.Uplink != nil) != (uplinks == 1) {
			t.Fatalf("uplink %v, %d interfaces of that kind", set.Uplink, uplinks)
		}
	})
}

// TestDeriveBelievesWhoAttachesPods: reported pods count where VPP has no route to them, and do not
// replace pods that routes lead to.
func TestDeriveBelievesWhoAttachesPods(t *testing.T) {
	raw := Raw{Interfaces: []RawInterface{
		{Index: 1, Name: "memif0", Device: "memif", AdminUp: true, LinkUp: true},
		{Index: 2, Name: "memif1", Device: "memif", AdminUp: true, LinkUp: true},
		{Index: 3, Name: "memif2", Device: "memif", LinkUp: true},
	}}
	in := Input{
		Pods:           []*messages.Pod{{Namespace: "a", Name: "served", Addresses: []string{"10.1.1.9"}}},
		LocalEndpoints: []string{"10.1.1.9"},
		Attached:       map[string][]string{"memif0": {"a/served", "a/two"}, "memif2": {"a/down"}, "gone": {"a/gone"}},
		Detached:       map[string]bool{"memif1": true, "memif0": true},
	}
	set := Derive(raw, in)
	one, two, three := set.GetInterfaces()[0], set.GetInterfaces()[1], set.GetInterfaces()[2]
	if one.GetKind() != messages.InterfaceKind_INTERFACE_POD || !one.GetFrontend() || !one.GetBackend() || !one.GetLocal() || len(one.GetPods()) != 2 || one.GetDetached() {
		t.Errorf("attached: %v", one)
	}
	if two.GetFrontend() || !two.GetDetached() {
		t.Errorf("detached: %v", two)
	}
	if three.GetFrontend() || three.GetKind() != messages.InterfaceKind_INTERFACE_POD {
		t.Errorf("attached and down: %v", three)
	}
}
