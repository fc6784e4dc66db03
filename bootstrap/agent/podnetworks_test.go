package agent

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestPodNetworksText: the part of /readyz?verbose names the networks, or says what is wrong.
func TestPodNetworksText(t *testing.T) {
	own := &messages.Node{PodCidrs: []string{"10.1.2.0/24", "fd00:1:2::/64"}}
	nodes := map[string]*messages.Node{"a": own, "b": {PodCidrs: []string{"10.1.3.0/24"}}}
	configured := func(networks ...string) service.Config {
		return service.Config{ClusterCIDRs: service.Networks(networks)}
	}
	for name, test := range map[string]struct {
		serving service.Config
		input   *messages.NodeInput
		want    string
	}{
		"of the nodes": {service.Config{NodesPodNetworks: true}, &messages.NodeInput{Self: own, Nodes: nodes}, "[10.1.2.0/23 fd00:1:2::/64]"},
		"no node has one": {
			service.Config{NodesPodNetworks: true},
			&messages.NodeInput{Self: &messages.Node{}},
			"warning: no Node has spec.podCIDRs: name the networks of pods in services.clusterCIDRs",
		},
		"configured": {configured("10.1.0.0/16", "fd00:1::/32"), &messages.NodeInput{Self: own, Nodes: nodes}, "[10.1.0.0/16 fd00:1::/32]"},
		"not of this node": {
			configured("10.1.0.0/16"), &messages.NodeInput{Self: own},
			"warning: services.clusterCIDRs [10.1.0.0/16] do not contain spec.podCIDRs fd00:1:2::/64 of this node",
		},
		"smaller than this node's": {
			configured("10.1.2.0/25", "fd00:1::/32"), &messages.NodeInput{Self: own},
			"warning: services.clusterCIDRs [10.1.2.0/25 fd00:1::/32] do not contain spec.podCIDRs 10.1.2.0/24 of this node",
		},
		"services of the cluster": {
			configured("10.0.0.0/8"), &messages.NodeInput{ServiceCidrs: []string{"fd00:96::/112", "10.96.0.0/12"}},
			"warning: 10.0.0.0/8 of pods (services.clusterCIDRs) overlaps 10.96.0.0/12 of services",
		},
		"configured services": {
			service.Config{ClusterCIDRs: service.Networks([]string{"10.1.0.0/16"}), ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.128.0/20")}},
			nil,
			"warning: 10.1.0.0/16 of pods (services.clusterCIDRs) overlaps 10.1.128.0/20 of services",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podNetworksText(&test.serving, test.input); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
