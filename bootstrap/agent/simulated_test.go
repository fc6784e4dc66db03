package agent

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// addrPort parses "ip:port".
func addrPort(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func pod(name, address string) *messages.Pod {
	return &messages.Pod{Namespace: "shop", Name: name, Addresses: []string{address}}
}

func node(pods ...*messages.Pod) *messages.NodeInput {
	return &messages.NodeInput{
		Self: &messages.Node{Name: "n1", Addresses: []string{"fd00::1", "192.168.7.1"}, PodCidrs: []string{"10.1.1.0/24"}}, Pods: pods,
	}
}

// names are the interfaces of VPP besides local0.
func names(vpp *simulator.VPP) []string {
	var out []string
	for name := range vpp.Interfaces() {
		if name != "local0" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// TestSimulatedCNI connects what Kubernetes knows, whatever comes first, and all of it again to a
// VPP that was started again.
func TestSimulatedCNI(t *testing.T) {
	cni := newSimulatedCNI()
	vpp := simulator.New(simulator.Options{OnBoot: cni.boot})
	defer vpp.Close()
	if got := names(vpp); len(got) != 0 {
		t.Errorf("before the node is known: %v", got)
	}
	if a, name := cni.anyPod(); a.IsValid() || name != "" {
		t.Errorf("a pod before the node is known: %s on %s", a, name)
	}
	cni.changed(nil)
	host := &messages.Pod{Namespace: "kube-system", Name: "proxy", HostNetwork: true, Addresses: []string{"192.168.7.1"}}
	cni.changed(node(pod("b", "10.1.1.3"), host, pod("six", "fd00:1::5"), pod("none", "")))
	want := []string{"host0", "tap-shop-b", "tap-shop-six", "uplink0"}
	if got := names(vpp); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	cni.changed(node(pod("b", "10.1.1.3"), host, pod("six", "fd00:1::5"), pod("a", "10.1.1.4")))
	want = []string{"host0", "tap-shop-a", "tap-shop-b", "tap-shop-six", "uplink0"}
	if got := names(vpp); !slices.Equal(got, want) {
		t.Errorf("with another pod: got %v, want %v", got, want)
	}
	if a, name := cni.anyPod(); a.String() != "10.1.1.4" || name != "tap-shop-a" {
		t.Errorf("the first pod is %s on %s", a, name)
	}
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := names(vpp); !slices.Equal(got, want) {
		t.Errorf("after a restart: got %v, want %v", got, want)
	}
	for dst, out := range map[string]string{"10.1.1.3": "tap-shop-b", "192.168.7.254": "uplink0", "8.8.8.8": "uplink0", "172.30.0.2": "host0"} {
		v := vpp.Send(simulator.Packet{In: "tap-shop-a", Src: addrPort(t, "10.1.1.4:4000"), Dst: netip.AddrPortFrom(netip.MustParseAddr(dst), 80), Proto: 6})
		if v.Out != out {
			t.Errorf("a packet to %s leaves by %q, want %q: %s", dst, v.Out, out, v)
		}
	}
}

func TestGateway(t *testing.T) {
	for subnet, want := range map[string]string{"192.168.16.1/24": "192.168.16.254", "10.0.0.254/24": "10.0.0.254"} {
		if got := gateway(netip.MustParsePrefix(subnet)); got.String() != want {
			t.Errorf("%s: %s, want %s", subnet, got, want)
		}
	}
}
