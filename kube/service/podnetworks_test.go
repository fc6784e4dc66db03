package service

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// TestPodNetworks: the networks of the nodes are merged into the fewest with the same addresses.
func TestPodNetworks(t *testing.T) {
	for name, test := range map[string]struct {
		nodes [][]string
		want  string
	}{
		"none":                {nil, "[]"},
		"neighbours":          {[][]string{{"10.1.1.0/24"}, {"10.1.0.0/24"}, {"10.1.2.0/24"}, {"10.1.3.0/24"}}, "[10.1.0.0/22]"},
		"not one network":     {[][]string{{"10.1.1.0/24"}, {"10.1.2.0/24"}}, "[10.1.1.0/24 10.1.2.0/24]"},
		"one inside of other": {[][]string{{"10.1.1.0/24"}, {"10.1.0.0/16"}}, "[10.1.0.0/16]"},
		"the same twice":      {[][]string{{"10.1.1.0/24"}, {"10.1.1.7/24"}}, "[10.1.1.0/24]"},
		"both families":       {[][]string{{"10.1.0.0/24", "fd00:1::/64"}, {"10.1.1.0/24", "fd00:1:0:1::/64"}}, "[10.1.0.0/23 fd00:1::/63]"},
		"everything":          {[][]string{{"0.0.0.0/1"}, {"128.0.0.0/1", "::/0"}}, "[0.0.0.0/0 ::/0]"},
		"no network":          {[][]string{{"nonsense"}}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := map[string]*messages.Node{}
			for i, cidrs := range test.nodes {
				nodes[fmt.Sprint(i)] = &messages.Node{PodCidrs: cidrs}
			}
			if got := fmt.Sprint((&Config{NodesPodNetworks: true}).PodNetworks(nodes)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestDetects: with the networks of the nodes, pods of a family are recognised if this node has a
// network of the family.
func TestDetects(t *testing.T) {
	node := &messages.NodeContext{Node: &messages.Node{PodCidrs: []string{"10.1.0.0/24"}}}
	for _, auto := range []bool{false, true} {
		cfg := Config{NodesPodNetworks: auto}
		four, six := cfg.detects(node, messages.IPFamily_IPV4), cfg.detects(node, messages.IPFamily_IPV6)
		if four != auto || six {
			t.Errorf("networks of the nodes %t: IPv4 %t, IPv6 %t", auto, four, six)
		}
	}
}
