package chaos

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// frontend is an address and TCP port of a service.
type frontend = netip.AddrPort

// expectation is the expected service at a frontend.
type expectation struct {
	service  int
	remote   []netip.Addr // endpoints for clients outside; none = these clients are not served
	local    []netip.Addr // endpoints for clients on this node
	affinity uint32
}

// none is the service of a mapping of external configuration.
const none = -1

// model computes the expected frontends of this node from the rules of Kubernetes alone. A frontend
// with another owner in VPP is not served.
func model(k *cluster, external map[frontend][]netip.Addr, foreign map[frontend]bool) map[frontend]expectation {
	want, taken := map[frontend]expectation{}, map[frontend]bool{}
	// the oldest service gets a contested address, at equal age the first by name
	order := slices.SortedFunc(maps.Keys(k.services), func(a, b int) int {
		return cmp.Or(cmp.Compare(k.services[a].created, k.services[b].created), cmp.Compare(serviceKey(a), serviceKey(b)))
	})
	for _, n := range order {
		s := k.services[n]
		all := k.endpoints(n)
		here := slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return !isLocal(a) })
		claim := func(at frontend, e expectation) {
			taken[at] = true // an allocated frontend is kept without endpoints, too
			if _, served := want[at]; served || foreign[at] || len(e.remote)+len(e.local) == 0 {
				return
			}
			e.service, e.affinity = n, s.affinity
			want[at] = e
		}
		outside := expectation{remote: all, local: all}
		if s.local {
			outside.remote = here
		}
		claim(netip.AddrPortFrom(clusterIP(n), servicePort), expectation{remote: all, local: all})
		if s.external >= 0 {
			claim(netip.AddrPortFrom(balancerIP(s.external), servicePort), outside)
		}
		if s.nodePort {
			claim(netip.AddrPortFrom(netip.MustParseAddr(nodeIP), nodePort(n)), outside)
		}
	}
	for at, to := range external { // services come first
		if !taken[at] && !foreign[at] {
			want[at] = expectation{service: none, remote: to, local: to}
		}
	}
	return want
}

// endpoints are the used endpoints of a service, ordered and unique: the ready endpoints, or, if
// there are none, the terminating endpoints that still serve.
func (k *cluster) endpoints(n int) []netip.Addr {
	var all, leaving []netip.Addr
	for id, s := range k.slices {
		if id[0] == n {
			all, leaving = append(all, s.endpoints...), append(leaving, s.leaving...)
		}
	}
	if len(all) == 0 {
		all = leaving
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// refused are the frontends at which every client must be refused: unused cluster IPs, and the
// addresses of services without endpoints that no service with endpoints claims.
func refused(k *cluster, want map[frontend]expectation, foreign map[frontend]bool) []frontend {
	var all []frontend
	add := func(at frontend) {
		if _, served := want[at]; !served && !foreign[at] && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	for n := range serviceNames {
		add(netip.AddrPortFrom(clusterIP(n), servicePort))
		if s, exists := k.services[n]; exists && s.external >= 0 && refusals(k)[netip.PrefixFrom(balancerIP(s.external), 32)] {
			add(netip.AddrPortFrom(balancerIP(s.external), servicePort))
		}
	}
	return all
}
