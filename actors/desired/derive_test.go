package desired

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

func TestNodeContextPutsKubernetesAddressesFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		kubernetes, vpp, want []string
	}{
		"Kubernetes only":               {[]string{"192.168.16.1", "fd00::1"}, nil, []string{"192.168.16.1", "fd00::1"}},
		"VPP adds its own":              {[]string{"172.30.1.1"}, []string{"192.168.16.1/24"}, []string{"172.30.1.1", "192.168.16.1"}},
		"the same address only once":    {[]string{"192.168.16.1"}, []string{"192.168.16.1/24"}, []string{"192.168.16.1"}},
		"an unreadable one is left out": {[]string{"192.168.16.1"}, []string{"nonsense"}, []string{"192.168.16.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := nodeContext(&messages.Node{Name: "n1", Addresses: tc.kubernetes}, tc.vpp)
			if diff := cmp.Diff(tc.want, got.GetAddresses()); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocalEndpointsAreDerivedNotCounted(t *testing.T) {
	service := &messages.Service{Namespace: "default", Name: "web"}
	on := func(node, address string) *messages.Endpoint { return &messages.Endpoint{Address: address, Node: node} }
	inputs := []*messages.ServiceInput{
		{Service: service, Slices: []*messages.EndpointSlice{
			{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.2"), on("n2", "10.1.2.2"), on("", "10.1.1.9")}},
			{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.2")}}, // the same pod in two slices
		}},
		{Service: service, Slices: []*messages.EndpointSlice{{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.1"), on("n1", "")}}}},
		{Slices: []*messages.EndpointSlice{{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.7")}}}}, // slices without a service
	}
	lists := map[string][]string{}
	for i, in := range inputs {
		lists[string(rune('a'+i))] = localEndpoints(in, "n1")
	}
	if diff := cmp.Diff(map[string][]string{"a": {"10.1.1.2"}, "b": {"10.1.1.1"}, "c": nil}, lists); diff != "" {
		t.Errorf("local endpoints by service (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.1.1.1", "10.1.1.2"}, union(lists)); diff != "" {
		t.Errorf("local endpoints (-want +got):\n%s", diff)
	}
}

func TestHairpinAddressIsTheLastOfThePodCIDR(t *testing.T) {
	for name, tc := range map[string]struct {
		cidrs []string
		want  string
	}{
		"/24":                    {[]string{"10.1.1.0/24"}, "10.1.1.254"},
		"/23 with host bits":     {[]string{"10.1.3.7/23"}, "10.1.3.254"},
		"IPv6 first":             {[]string{"fd00:1::/64", "10.1.2.0/24"}, "10.1.2.254"},
		"/30":                    {[]string{"10.1.2.0/30"}, "10.1.2.2"},
		"/26 with host bits":     {[]string{"10.1.1.77/26"}, "10.1.1.126"},
		"/8":                     {[]string{"fd00::/64", "10.0.0.0/8"}, "10.255.255.254"},
		"the first is too small": {[]string{"10.1.1.4/31", "10.1.1.0/24"}, "10.1.1.254"},
		"too small for anybody":  {[]string{"10.1.2.0/31"}, "invalid IP"},
		"unreadable":             {[]string{"10.1.2/24"}, "invalid IP"},
		"none":                   {nil, "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastAddress(&messages.Node{PodCidrs: tc.cidrs}).String(); got != tc.want {
				t.Errorf("lastAddress(%v) = %s, want %s", tc.cidrs, got, tc.want)
			}
		})
	}
}

// TestNAT44For: what is configured stays; otherwise the pod CIDR decides, and without one the node's own address.
func TestNAT44For(t *testing.T) {
	configured := netip.MustParseAddr("192.0.2.1")
	for name, tc := range map[string]struct {
		config nat44.Config
		node   *messages.Node
		want   string
	}{
		"configured":  {nat44.Config{TwiceNAT: configured}, &messages.Node{PodCidrs: []string{"10.1.1.0/24"}}, "192.0.2.1"},
		"pod CIDR":    {nat44.Config{}, &messages.Node{PodCidrs: []string{"10.1.1.0/24"}, Addresses: []string{"192.168.0.2"}}, "10.1.1.254"},
		"no pod CIDR": {nat44.Config{}, &messages.Node{Addresses: []string{"fd00::2", "192.168.0.2"}}, "192.168.0.2"},
		"nothing":     {nat44.Config{}, &messages.Node{}, "invalid IP"},
	} {
		if got := NAT44For(tc.config, tc.node).TwiceNAT.String(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
