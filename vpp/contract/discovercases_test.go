package contract

import (
	"fmt"
	"testing"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/messages"
	discovery "github.com/troupe-vpp/troupe/vpp/interfaces"
)

// summary returns one line per interface with its derived purpose.
func summary(set *messages.InterfaceSet) []string {
	var all []string
	for _, i := range set.GetInterfaces() {
		all = append(all, fmt.Sprintf("%s %s up=%v addresses=%v pods=%v frontend=%v backend=%v",
			i.GetName(), i.GetKind(), i.GetAdminUp(), i.GetAddresses(), i.GetPods(), i.GetFrontend(), i.GetBackend()))
	}
	return all
}

// discover runs the discovery of the agent for two pods, one of which is an endpoint.
func discover(t testing.TB, v *rig) *messages.InterfaceSet {
	t.Helper()
	set, err := new(discovery.Reader).Discover(t.Context(), v.link, discovery.Input{
		Boot: v.boot, LocalEndpoints: []string{"10.1.2.2"},
		Pods: []*messages.Pod{
			{Namespace: "default", Name: "a", Addresses: []string{"10.1.1.2"}},
			{Namespace: "default", Name: "b", Addresses: []string{"10.1.2.2"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

var discoverCases = []contractCase{
	{"discover/nothing", func(t *testing.T, v *rig) {
		set := discover(t, v)
		check(t, "interfaces", []string{"local0 INTERFACE_INTERNAL up=false addresses=[] pods=[] frontend=false backend=false"}, summary(set))
		if set.Uplink != nil || set.GetBoot() != v.boot {
			t.Errorf("set %v", set)
		}
	}},
	{"discover/a node", func(t *testing.T, v *rig) {
		uplink, a, b := loopback(t, v), loopback(t, v), loopback(t, v)
		loopback(t, v)
		v.expect(t, ok, up(uplink))
		v.expect(t, ok, address(t, uplink, "192.168.50.1/24"))
		v.expect(t, ok, route(t, "0.0.0.0/0", via(uplink, [4]byte{192, 168, 50, 254})))
		v.expect(t, ok, up(a))
		v.expect(t, ok, &interfaces.SwInterfaceSetUnnumbered{IsAdd: true, SwIfIndex: uplink, UnnumberedSwIfIndex: a})
		v.expect(t, ok, route(t, "10.1.1.2/32", via(a, [4]byte{10, 1, 1, 2})))
		v.expect(t, ok, up(b))
		v.expect(t, ok, address(t, b, "10.1.2.1/24"))
		v.expect(t, ok, neighbour(t, b, "10.1.2.2"))

		set := discover(t, v)
		check(t, "interfaces", []string{
			"local0 INTERFACE_INTERNAL up=false addresses=[] pods=[] frontend=false backend=false",
			"loop0 INTERFACE_UPLINK up=true addresses=[192.168.50.1/24] pods=[] frontend=true backend=true",
			"loop1 INTERFACE_POD up=true addresses=[] pods=[default/a] frontend=true backend=false",
			"loop2 INTERFACE_POD up=true addresses=[10.1.2.1/24] pods=[default/b] frontend=true backend=true",
			"loop3 INTERFACE_INTERNAL up=false addresses=[] pods=[] frontend=false backend=false",
		}, summary(set))
		if set.GetUplink() != uint32(uplink) {
			t.Errorf("uplink %d", set.GetUplink())
		}
		check(t, "node addresses", []string{"192.168.50.1/24"}, set.GetNodeAddresses())
	}},
	{"discover/a pod behind a recursive route", func(t *testing.T, v *rig) {
		b := loopback(t, v)
		v.expect(t, ok, up(b))
		v.expect(t, ok, address(t, b, "10.0.0.1/24"))
		v.expect(t, ok, route(t, "10.1.2.0/24", via(none, [4]byte{10, 0, 0, 7})))
		for _, i := range discover(t, v).GetInterfaces() {
			if i.GetSwIfIndex() == uint32(b) && (!i.GetBackend() || len(i.GetPods()) != 1) {
				t.Errorf("interface %v", i)
			}
		}
	}},
	{"discover/repeatedly, with a change that VPP has no event for", func(t *testing.T, v *rig) {
		uplink, a, b := loopback(t, v), loopback(t, v), loopback(t, v)
		for index, prefix := range map[interface_types.InterfaceIndex]string{uplink: "192.168.50.1/24", a: "10.1.1.1/24", b: "10.1.2.1/24"} {
			v.expect(t, ok, up(index))
			v.expect(t, ok, address(t, index, prefix))
		}
		v.expect(t, ok, route(t, "0.0.0.0/0", via(uplink, [4]byte{192, 168, 50, 254})))
		reader, in := discovery.Reader{Share: 1}, discovery.Input{Boot: v.boot, LocalEndpoints: []string{"10.1.1.2", "10.1.2.2"}}
		round := func() []string {
			set, err := reader.Discover(t.Context(), v.link, in)
			if err != nil {
				t.Fatal(err)
			}
			return summary(set)
		}
		for range 5 {
			round()
		}
		v.expect(t, ok, address(t, b, "10.1.9.1/24"))
		v.expect(t, ok, route(t, "10.1.1.2/32", via(b, [4]byte{10, 1, 2, 7})))
		round()
		got := round()
		want, err := new(discovery.Reader).Discover(t.Context(), v.link, in)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "interfaces after two rounds", summary(want), got)
	}},
}
