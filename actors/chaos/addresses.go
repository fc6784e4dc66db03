package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.fd.io/govpp/api"
	wire "go.fd.io/govpp/binapi/vrrp"

	"github.com/troupe-vpp/troupe/actors/render/addresses"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/owned"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/vrrp"
)

// edge is the interface with the network of the load-balancer addresses.
const edge = "edge0"

// connectEdge adds the interface edge.
func connectEdge(v *simulator.VPP) error {
	four := netip.MustParsePrefix("203.0.113.250/24")
	_, err := v.AddInterface(edge, []netip.Prefix{four, netip.PrefixFrom(twin(four.Addr()), 64)}, true)
	return err
}

// addressPool is the pool of the load-balancer addresses, which have a virtual router each.
func addressPool() *messages.AddressPool {
	return &messages.AddressPool{Name: "edge", Ranges: []string{"203.0.113.0-203.0.113.15", "fd00:cb00:71::-fd00:cb00:71::f"}, FirstRouter: 1, LastRouter: 16}
}

// announce gives the agent the renderer of virtual routers. All routers in VPP are of the agent,
// which may stop one only if this node should not own its address.
func (w *world) announce() {
	w.deps.Addresses = &addresses.Config{Interval: 500 * time.Millisecond, Made: func(owned.Object) bool { return true }}
	w.vpp.Veto = func(req api.Message) error {
		if m, is := req.(*wire.VrrpVrStartStop); is && m.IsStart == 0 {
			w.stopped(balancerIP(int(m.VrID) - 1))
		}
		return nil
	}
}

// owns reports whether this node may own a load-balancer address: Services have it, and each of
// them is served here.
func (k *cluster) owns(addr netip.Addr) bool {
	found := false
	for n, s := range k.services {
		if s.external < 0 || balancerIP(s.external) != addr {
			continue
		}
		found = true
		if all := k.endpoints(n); s.local && len(all) > 0 && !slices.ContainsFunc(all, isLocal) {
			return false
		}
	}
	return found
}

// lookAtAddresses notes which addresses are not wanted now.
func (w *world) lookAtAddresses() {
	for n := range balancerIPs {
		if addr := balancerIP(n); !w.cluster.owns(addr) {
			w.unwanted[addr] = w.now()
		}
	}
}

// stopped judges that the agent stops the router of an address (I12): other nodes would take over,
// and connections would end. The agent may know an older state of the cluster, and gives up all
// addresses when it cannot program VPP.
func (w *world) stopped(addr netip.Addr) {
	const lag = 2 * time.Minute
	w.lookAtAddresses()
	if w.now().Sub(w.unwanted[addr]) < lag {
		return
	}
	for _, part := range w.deps.Readiness.Load().Parts {
		if !part.OK && part.Name != addresses.Name && w.now().Sub(part.Since) > 4*time.Second {
			return
		}
	}
	w.breach("I12: the agent stops the virtual router of %s, which this node should own", addr)
}

// wrongRouters compares virtual routers with the model (I1).
func (w *world) wrongRouters() (wrong []string) {
	if !w.cluster.announces {
		return nil
	}
	all, err := vrrp.Read(context.Background(), w.vpp.Reader(), func(vrrp.Key) bool { return true })
	if err != nil {
		return []string{"I1: " + err.Error()}
	}
	held := map[netip.Addr]bool{}
	for k, h := range all {
		addr := balancerIP(int(k.ID) - 1)
		member := addr
		if k.IPv6 {
			member = twin(addr)
		}
		if held[member] = true; !w.cluster.owns(addr) || !h.Running() || !slices.Equal(h.Addresses, []netip.Addr{member}) {
			wrong = append(wrong, fmt.Sprintf("I1: VPP has the virtual router %s of %v, running %t", k, h.Addresses, h.Running()))
		}
	}
	for n := range balancerIPs {
		if addr := balancerIP(n); w.cluster.owns(addr) && (!held[addr] || w.cluster.ip6 && !held[twin(addr)]) {
			wrong = append(wrong, fmt.Sprintf("I1: VPP has no virtual router of %s", addr))
		}
	}
	slices.Sort(wrong)
	return wrong
}
