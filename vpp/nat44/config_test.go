package nat44

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

func TestHairpinAddressIsTheLastOfThePodCIDR(t *testing.T) {
	for name, tc := range map[string]struct {
		cidrs []string
		want  string
	}{
		"/24":                      {[]string{"10.1.1.0/24"}, "10.1.1.254"},
		"/23 with host bits":       {[]string{"10.1.3.7/23"}, "10.1.3.254"},
		"IPv6 first":               {[]string{"fd00:1::/64", "10.1.2.0/24"}, "10.1.2.254"},
		"/30":                      {[]string{"10.1.2.0/30"}, "10.1.2.2"},
		"/26 with host bits":       {[]string{"10.1.1.77/26"}, "10.1.1.126"},
		"/8":                       {[]string{"fd00::/64", "10.0.0.0/8"}, "10.255.255.254"},
		"the first is too small":   {[]string{"10.1.1.4/31", "10.1.1.0/24"}, "10.1.1.254"},
		"too small for an address": {[]string{"10.1.2.0/31"}, "invalid IP"},
		"unreadable":               {[]string{"10.1.2/24"}, "invalid IP"},
		"none":                     {nil, "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastAddress(&messages.Node{PodCidrs: tc.cidrs}).String(); got != tc.want {
				t.Errorf("lastAddress(%v) = %s, want %s", tc.cidrs, got, tc.want)
			}
		})
	}
}

// TestForNode: a configured address stays; otherwise the pod CIDR decides, and without one the
// node's own address.
func TestForNode(t *testing.T) {
	configured := netip.MustParseAddr("192.0.2.1")
	for name, tc := range map[string]struct {
		config Config
		node   *messages.Node
		want   string
		clash  bool
	}{
		"configured":  {Config{TwiceNAT: configured}, &messages.Node{PodCidrs: []string{"10.1.1.0/24"}}, "192.0.2.1", true},
		"of the node": {Config{TwiceNAT: configured}, &messages.Node{Addresses: []string{"fd00::2", "192.0.2.1"}}, "192.0.2.1", false},
		"pod CIDR":    {Config{}, &messages.Node{PodCidrs: []string{"10.1.1.0/24"}, Addresses: []string{"192.168.0.2"}}, "10.1.1.254", true},
		"no pod CIDR": {Config{}, &messages.Node{Addresses: []string{"fd00::2", "192.168.0.2"}}, "192.168.0.2", false},
		"nothing":     {Config{}, &messages.Node{}, "invalid IP", true},
	} {
		tc.config.MasqueradeClashes = true
		if got := tc.config.ForNode(tc.node); got.TwiceNAT.String() != tc.want || got.MasqueradeClashes != tc.clash {
			t.Errorf("%s: %s, %v; want %s, %v", name, got.TwiceNAT, got.MasqueradeClashes, tc.want, tc.clash)
		}
	}
}
