package chaos

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	kubeservice "github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// serviceNetwork holds the cluster IPs.
var serviceNetwork = netip.MustParsePrefix("10.96.0.0/16")

// serving are the settings of kube/service in every world.
func serving() kubeservice.Config {
	return kubeservice.Config{ServiceCIDRs: []netip.Prefix{serviceNetwork}}
}

// refusals are the networks and addresses that routes must refuse on this node: the service
// network, cluster IPs without endpoints, and load-balancer addresses if no service there has
// endpoints.
func refusals(k *cluster) map[netip.Prefix]bool {
	want, left := map[netip.Prefix]bool{serviceNetwork: true}, map[netip.Prefix]bool{}
	for n, s := range k.services {
		all := k.endpoints(n)
		if len(all) == 0 {
			want[netip.PrefixFrom(clusterIP(n), 32)] = true
		}
		if s.external < 0 || k.announces { // a host may have an address in a network of VPP
			continue
		}
		if at := netip.PrefixFrom(balancerIP(s.external), 32); len(all) == 0 {
			want[at] = true
		} else {
			left[at] = true // this node or another one serves it
		}
	}
	maps.DeleteFunc(want, func(p netip.Prefix, _ bool) bool { return left[p] })
	if k.ip6 {
		for p := range maps.Clone(want) {
			if p.IsSingleIP() {
				want[netip.PrefixFrom(twin(p.Addr()), 128)] = true
			}
		}
		want[serviceNetwork6] = true
	}
	return want
}

// leftBehind finds addresses that NAT44 has made addresses of VPP and that no row needs (I1): VPP
// would take packets for the real owner of such an address.
func (w *world) leftBehind(own *nat44.State) (wrong []string) {
	ofService := map[frontend]bool{}
	for at, e := range model(w.cluster, w.externalWanted(), w.foreign) {
		ofService[at] = e.service != none && !serviceNetwork.Contains(at.Addr())
	}
	kept := map[netip.Addr]bool{netip.MustParseAddr(loopbackIP): true} // only the agent uses it
	for _, row := range w.rows() {
		kept[row.At.Addr()] = !ofService[row.At]
	}
	for _, key := range w.exempt() {
		kept[key.Addr] = true
	}
	for addr := range own.Received {
		if !kept[addr] {
			wrong = append(wrong, fmt.Sprintf("I1: VPP takes %s for its own", addr))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// wrongRoutes compares the routes of the agent in VPP with refusals (I1).
func (w *world) wrongRoutes(own *nat44.State) (wrong []string) {
	want := refusals(w.cluster)
	state, err := routes.Read(context.Background(), w.vpp.Reader(), slices.Collect(maps.Keys(want)), nil)
	if err != nil {
		return []string{"I1: " + err.Error()}
	}
	held := map[netip.Prefix]bool{}
	for place, kind := range state.Routes {
		if kind != routes.Reject || held[place.Prefix] || !want[place.Prefix] {
			wrong = append(wrong, fmt.Sprintf("I1: VPP has a route %s (%s) that no service wants, or has it twice", place.Prefix, kind))
		}
		held[place.Prefix] = true
	}
	for p := range want {
		_, beneath := state.Beneath[p]
		if p.Addr().Is6() && beneath {
			continue // CNAT keeps an address as long as the address has a session
		}
		if !held[p] && !(p.IsSingleIP() && own.Received[p.Addr()]) {
			// a route of NAT44 hides the route of the agent; leftBehind reports it if
			// there is no row
			wrong = append(wrong, fmt.Sprintf("I1: VPP does not refuse %s", p))
		}
	}
	slices.Sort(wrong)
	return wrong
}
