package interfaces

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// TestUnplaced: "pods; endpoints; VPP's routes; interfaces that are down => addresses without an
// interface". host/ is a pod in the host network; interface 1 is the uplink.
func TestUnplaced(t *testing.T) {
	for name, tt := range map[string]struct{ pods, endpoints, routes, down, want string }{
		"all are there":                  {pods: "a=10.1.1.2 b=10.1.1.3", endpoints: "10.1.1.2", routes: "10.1.1.2=2 10.1.1.3=3"},
		"one has no route":               {pods: "a=10.1.1.2 b=10.1.1.3", routes: "10.1.1.2=2", want: "10.1.1.3"},
		"only the default route":         {pods: "a=10.1.1.2", routes: "10.1.1.2/0=1", want: "10.1.1.2"},
		"the interface is gone":          {pods: "a=10.1.1.2", routes: "10.1.1.2=9", want: "10.1.1.2"},
		"the interface is down":          {pods: "a=10.1.1.2", routes: "10.1.1.2=2", down: "2", want: "10.1.1.2"},
		"a pod of the host":              {pods: "host/a=192.168.16.1", endpoints: "192.168.16.1"},
		"an address of VPP":              {endpoints: "192.168.50.1"},
		"an endpoint without a pod":      {endpoints: "10.1.1.9", routes: "10.1.1.2=2", want: "10.1.1.9"},
		"an endpoint elsewhere":          {endpoints: "10.9.1.9", routes: "10.9.1.9/0=1 10.1.1.2=2"},
		"a family that VPP routes":       {pods: "a=10.1.1.2,fd00::2 b=fd00::3", endpoints: "10.1.1.2 fd00::2", routes: "10.1.1.2=2 fd00::3=3", want: "fd00::2"},
		"the same address, no endpoint":  {pods: "a=10.1.1.2,fd00::2 b=fd00::3", endpoints: "10.1.1.2", routes: "10.1.1.2=2 fd00::3=3"},
		"a family that VPP does not":     {pods: "a=10.1.1.2,fd00::2", endpoints: "10.1.1.2 fd00::2", routes: "10.1.1.2=2"},
		"attached, and the route waits":  {pods: "attached=10.1.1.2"},
		"not attached, and no pod knows": {pods: "a=10.1.1.4 b=10.1.1.3", want: "10.1.1.3 10.1.1.4"},
	} {
		raw := Raw{Interfaces: []RawInterface{{Name: "local0"}, up(1, "uplink", "dpdk", "192.168.50.1/24"), up(2, "tap2", "virtio"), up(3, "tap3", "virtio")}, Targets: map[netip.Addr]Target{}}
		for i := range raw.Interfaces {
			raw.Interfaces[i].AdminUp = !strings.Contains(tt.down+"0", string(rune('0'+raw.Interfaces[i].Index)))
		}
		for _, route := range strings.Fields(tt.routes) {
			to, index, _ := strings.Cut(route, "=")
			address, bits, short := strings.Cut(to, "/")
			a := netip.MustParseAddr(address)
			prefix := netip.PrefixFrom(a, a.BitLen())
			if short && bits == "0" {
				prefix = netip.PrefixFrom(a, 0).Masked()
			}
			raw.Targets[a] = Target{Prefix: prefix, Interfaces: []uint32{uint32(index[0] - '0')}}
		}
		in := Input{LocalEndpoints: strings.Fields(tt.endpoints), Attached: map[string][]string{"tap3": {"n/attached"}}, NodeAddresses: []string{"192.168.16.1"}}
		for _, text := range strings.Fields(tt.pods) {
			pod, addresses, _ := strings.Cut(text, "=")
			namespace, host := strings.CutPrefix(pod, "host/")
			in.Pods = append(in.Pods, &messages.Pod{Namespace: "n", Name: namespace, HostNetwork: host, Addresses: strings.Split(addresses, ",")})
		}
		if got := strings.Join(Derive(raw, in).GetUnplaced(), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestLost: "interfaces; number of pods, was there an uplink => why VPP forwards nothing".
func TestLost(t *testing.T) {
	for name, tt := range map[string]struct {
		interfaces string
		pods       int
		hadUplink  bool
		want       string
	}{
		"all is there":                {"uplink pod", 2, true, ""},
		"no pods yet":                 {"uplink", 0, true, ""},
		"only local0":                 {"", 2, false, "VPP has no uplink"},
		"only local0, no pods":        {"", 0, false, "VPP has no uplink"},
		"no pod's interface":          {"uplink other", 2, true, "VPP has no interface of any of the 2 pods"},
		"no uplink":                   {"pod", 2, false, "VPP has no uplink"},
		"the uplink is down":          {"-uplink pod", 2, true, "the uplink -uplink is down in VPP"},
		"routes without a default":    {"other pod", 2, false, ""},
		"the default route went away": {"other pod", 2, true, "VPP has no uplink"},
	} {
		set := &messages.InterfaceSet{}
		for i, name := range strings.Fields(tt.interfaces) {
			one := &messages.Interface{SwIfIndex: uint32(i + 1), Name: name, AdminUp: name[0] != '-', Kind: messages.InterfaceKind_INTERFACE_OTHER}
			switch strings.TrimPrefix(name, "-") {
			case "uplink":
				one.Kind, set.Uplink = messages.InterfaceKind_INTERFACE_UPLINK, &one.SwIfIndex
			case "pod":
				one.Kind, one.Pods = messages.InterfaceKind_INTERFACE_POD, []string{"n/p"}
			}
			one.Frontend = one.AdminUp
			set.Interfaces = append(set.Interfaces, one)
		}
		pods := slices.Repeat([]*messages.Pod{{Namespace: "n", Name: "p", Addresses: []string{"10.1.1.2"}}}, tt.pods)
		pods = append(pods, &messages.Pod{Namespace: "n", Name: "host", HostNetwork: true, Addresses: []string{"192.168.16.1"}})
		if got := Lost(set, pods, tt.hadUplink); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
