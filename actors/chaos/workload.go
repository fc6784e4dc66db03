package chaos

import (
	"math/rand/v2"
	"net/netip"
	"slices"
)

// change is the kind of step that changes the cluster.
const change = "change"

// mutate makes one random change of the cluster.
func (k *cluster) mutate(r *rand.Rand, hot bool) {
	names := serviceNames
	if hot {
		names = 3
	}
	n := r.IntN(names)
	switch r.IntN(10) {
	case 0, 1, 2:
		k.put(n, randomService(r))
	case 3:
		k.remove(n)
		if r.IntN(2) == 0 {
			k.collect(n) // otherwise that happens later, or the service comes back before
		}
	case 4, 5, 6, 7:
		k.putSlice(n, r.IntN(slicesOfService), randomEndpoints(r))
	case 8:
		k.removeSlice(n, r.IntN(slicesOfService))
	case 9:
		k.setZone([]string{"a", "b"}[r.IntN(2)])
	}
}

func randomService(r *rand.Rand) service {
	s := service{created: int64(r.IntN(3)), external: r.IntN(2*externalIPs) - externalIPs, nodePort: r.IntN(3) == 0}
	s.local = r.IntN(4) == 0
	if r.IntN(5) == 0 {
		s.affinity = 60
	}
	return s
}

func randomEndpoints(r *rand.Rand) []netip.Addr {
	var all []netip.Addr
	for range r.IntN(5) {
		all = append(all, podIP(1+r.IntN(2), r.IntN(podsPerNode)))
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}
