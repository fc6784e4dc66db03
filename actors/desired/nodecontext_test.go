package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
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
			got := NodeContext(&messages.Node{Name: "n1", Addresses: tc.kubernetes}, tc.vpp)
			if diff := cmp.Diff(tc.want, got.GetAddresses()); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}
