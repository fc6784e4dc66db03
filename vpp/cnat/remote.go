package cnat

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/acl"
)

// maxTargets is the largest number of single addresses that have an entry of their own. VPP gets
// the networks that are no targets, up to a hundred for each target, and searches them with every
// packet that has no session.
const maxTargets = 32

// Remote are the endpoints on other nodes, and the networks that cover them, the targets: on the
// way to one of them the source of clients outside is replaced. Each endpoint is a network of its
// own as long as a family has no more than maxTargets; otherwise pod networks stand for their
// endpoints, and there is room for the first maxTargets others. What an endpoint costs does not
// grow with the number of endpoints, unless it leaves and was one of these others. Remote belongs
// to one goroutine.
type Remote struct {
	networks map[netip.Prefix]bool // the pod networks
	lengths  []int                 // of their prefixes, the longest first
	families [2]remotes            // IPv4, IPv6
	targets  []netip.Prefix        // as Settle made them last, ordered; immutable
	stale    bool                  // targets may be other ones now
	left     int                   // as of the last Settle
}

// remotes are the endpoints of one family.
type remotes struct {
	uses    map[netip.Addr]int   // number of services by endpoint
	within  map[netip.Prefix]int // number of endpoints by pod network
	outside int                  // number of endpoints in no pod network
	first   []netip.Addr         // of these the first maxTargets, ordered
}

// NewRemote returns a Remote without endpoints. The pod networks are those of the other nodes.
func NewRemote(podNetworks []netip.Prefix) *Remote {
	r, lengths := &Remote{networks: map[netip.Prefix]bool{}}, map[int]bool{}
	for _, network := range podNetworks {
		r.networks[network], lengths[network.Bits()] = true, true
	}
	r.lengths = slices.Sorted(maps.Keys(lengths))
	slices.Reverse(r.lengths)
	for i := range r.families {
		r.families[i] = remotes{uses: map[netip.Addr]int{}, within: map[netip.Prefix]int{}}
	}
	return r
}

// Count adds n to the number of services that have an endpoint; n may be negative. The caller adds
// the endpoints of a new plan before it takes those of the old plan away. An endpoint of both plans
// then costs nothing.
func (r *Remote) Count(endpoint netip.Addr, n int) {
	f := r.family(endpoint)
	before := len(f.uses)
	if f.uses[endpoint] += n; f.uses[endpoint] == 0 {
		delete(f.uses, endpoint)
	}
	change := len(f.uses) - before
	if change == 0 {
		return
	}
	r.stale = r.stale || len(f.uses) <= maxTargets+1
	network, inside := r.network(endpoint)
	if !inside {
		r.stale = r.place(f, endpoint, change) || r.stale
		return
	}
	if f.within[network] += change; f.within[network] == 0 {
		delete(f.within, network)
	}
	r.stale = r.stale || f.within[network] <= 1
}

// family returns the endpoints of the same family.
func (r *Remote) family(endpoint netip.Addr) *remotes {
	if endpoint.Is6() {
		return &r.families[1]
	}
	return &r.families[0]
}

// network returns the pod network of an endpoint.
func (r *Remote) network(endpoint netip.Addr) (network netip.Prefix, inside bool) {
	for _, bits := range r.lengths {
		if network, err := endpoint.Prefix(bits); err == nil && r.networks[network] {
			return network, true
		}
	}
	return netip.Prefix{}, false
}

// place enters an endpoint in no pod network that has come (change = 1) or gone (-1), and reports
// whether it is, or was, one of the first.
func (r *Remote) place(f *remotes, endpoint netip.Addr, change int) bool {
	f.outside += change
	at, found := slices.BinarySearchFunc(f.first, endpoint, netip.Addr.Compare)
	switch {
	case change > 0 && at < maxTargets:
		f.first = slices.Insert(f.first, at, endpoint)
		f.first = f.first[:min(len(f.first), maxTargets)]
	case change < 0 && found:
		f.first = slices.Delete(f.first, at, at+1)
		if f.outside > len(f.first) {
			r.refill(f)
		}
	default:
		return false
	}
	return true
}

// refill looks for the first endpoints in no pod network.
func (r *Remote) refill(f *remotes) {
	f.first = f.first[:0]
	for endpoint := range f.uses {
		at, _ := slices.BinarySearchFunc(f.first, endpoint, netip.Addr.Compare)
		if at == maxTargets {
			continue
		}
		if _, inside := r.network(endpoint); !inside {
			f.first = slices.Insert(f.first, at, endpoint)
			f.first = f.first[:min(len(f.first), maxTargets)]
		}
	}
}

// Settle works out the targets, and reports whether they are other ones than before.
func (r *Remote) Settle() (changed bool) {
	r.left = 0
	for _, f := range r.families {
		if len(f.uses) > maxTargets {
			r.left += f.outside - len(f.first)
		}
	}
	if !r.stale {
		return false
	}
	var targets []netip.Prefix
	for _, f := range r.families {
		single := f.first
		if len(f.uses) <= maxTargets {
			single = slices.Collect(maps.Keys(f.uses))
		} else {
			targets = slices.AppendSeq(targets, maps.Keys(f.within))
		}
		for _, endpoint := range single {
			targets = append(targets, netip.PrefixFrom(endpoint, endpoint.BitLen()))
		}
	}
	slices.SortFunc(targets, comparePrefixes)
	changed = !slices.Equal(targets, r.targets)
	r.targets, r.stale = targets, false
	return changed
}

// Targets returns the targets as Settle made them last, ordered.
func (r *Remote) Targets() []netip.Prefix { return r.targets }

// Left returns for how many endpoints there was no room at the last Settle: their clients keep
// their addresses.
func (r *Remote) Left() int { return r.left }

// excluded returns all networks that are no targets, in the families with an SNAT address. Until
// every service has rendered some targets may be missing, so VPP keeps the targets that it has.
func (w *Want) excluded(held map[netip.Prefix]bool) map[netip.Prefix]bool {
	excluded := map[netip.Prefix]bool{}
	for _, addr := range w.SNAT {
		if addr.IsUnspecified() {
			continue
		}
		all, _ := addr.Prefix(0)
		targets := slices.Clone(w.Targets)
		if kept := ofFamily(held, all); w.Partial && len(kept) > 0 {
			targets = append(targets, acl.Complement(all, kept)...)
		}
		for _, p := range acl.Complement(all, targets) {
			excluded[p] = true
		}
	}
	return excluded
}

// ofFamily returns the networks of the same family as like.
func ofFamily(networks map[netip.Prefix]bool, like netip.Prefix) (found []netip.Prefix) {
	for p := range networks {
		if p.Addr().Is4() == like.Addr().Is4() {
			found = append(found, p)
		}
	}
	return found
}

// missingFrom returns the networks of one set that the other lacks, ordered, marks first.
func missingFrom(other, one map[netip.Prefix]bool) (missing []netip.Prefix) {
	for p := range one {
		if !other[p] {
			missing = append(missing, p)
		}
	}
	slices.SortFunc(missing, comparePrefixes)
	return missing
}

// comparePrefixes orders networks by address, the larger one first, and marks before all others.
func comparePrefixes(a, b netip.Prefix) int {
	if isMark(a) != isMark(b) {
		if isMark(a) {
			return -1
		}
		return 1
	}
	return a.Compare(b)
}
