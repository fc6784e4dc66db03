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

// serving are the settings of the service semantics of every world.
func serving() kubeservice.Config {
	return kubeservice.Config{ServiceCIDRs: []netip.Prefix{serviceNetwork}}
}

// refusals says which addresses this node has to refuse, from the rules of Kubernetes and what
// routes can do: the service network as a whole, cluster IPs without endpoints, and load-balancer
// addresses none of whose services has endpoints.
func refusals(k *cluster) map[netip.Prefix]bool {
	want, left := map[netip.Prefix]bool{serviceNetwork: true}, map[netip.Prefix]bool{}
	for n, s := range k.services {
		all := k.endpoints(n)
		if len(all) == 0 {
			want[netip.PrefixFrom(clusterIP(n), 32)] = true
		}
		if s.external < 0 {
			continue
		}
		if at := netip.PrefixFrom(balancerIP(s.external), 32); len(all) == 0 {
			want[at] = true
		} else {
			left[at] = true // to the network: this node or others serve it
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

// leftBehind finds addresses that NAT44 has made VPP's own and for which there is no row any more,
// or that others may use as well (I1): the owner of such an address is not reached.
func (w *world) leftBehind(own *nat44.State) (wrong []string) {
	ofService := map[frontend]bool{}
	for at, e := range model(w.cluster, w.externalWanted(), w.foreign) {
		ofService[at] = e.service != none && !serviceNetwork.Contains(at.Addr())
	}
	kept := map[netip.Addr]bool{netip.MustParseAddr(loopbackIP): true} // of the agent alone
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

// wrongRoutes compares the routes of ours in VPP with what has to be refused (I1).
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
			continue // CNAT keeps an address as long as a session of it lives
		}
		if !held[p] && !(p.IsSingleIP() && own.Received[p.Addr()]) {
			// a route of NAT44 hides ours; leftBehind finds it where there is no row
			wrong = append(wrong, fmt.Sprintf("I1: VPP does not refuse %s", p))
		}
	}
	slices.Sort(wrong)
	return wrong
}
