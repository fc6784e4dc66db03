package cnat

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/acl"
)

// maxTargets is the largest number of single addresses that have an entry of their own. VPP gets
// the networks that are no targets, up to a hundred for each target, and searches them with every
// packet that has no session.
const maxTargets = 32

// Targets returns the networks of endpoints on other nodes, ordered: on the way to one of them the
// source of clients outside is replaced. Each endpoint is a network of its own as long as a family
// has no more than maxTargets; otherwise pod networks stand for their endpoints. left are the last
// endpoints, for which there is no room: their clients keep their addresses.
func Targets(endpoints []netip.Addr, podNetworks []netip.Prefix) (targets []netip.Prefix, left int) {
	for _, ip6 := range [...]bool{false, true} {
		var single []netip.Prefix
		for _, e := range endpoints {
			if e.Is6() == ip6 {
				single = append(single, netip.PrefixFrom(e, e.BitLen()))
			}
		}
		if len(single) > maxTargets {
			single = slices.DeleteFunc(single, func(p netip.Prefix) bool {
				in := slices.IndexFunc(podNetworks, func(network netip.Prefix) bool { return network.Contains(p.Addr()) })
				if in >= 0 {
					targets = append(targets, podNetworks[in])
				}
				return in >= 0
			})
		}
		slices.SortFunc(single, comparePrefixes)
		room := min(len(single), maxTargets)
		targets, left = append(targets, single[:room]...), left+len(single)-room
	}
	slices.SortFunc(targets, comparePrefixes)
	return slices.Compact(targets), left
}

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

// missingFrom returns the networks of one set that the other lacks, ordered.
func missingFrom(other, one map[netip.Prefix]bool) (missing []netip.Prefix) {
	for p := range one {
		if !other[p] {
			missing = append(missing, p)
		}
	}
	slices.SortFunc(missing, comparePrefixes)
	return missing
}

// comparePrefixes orders networks by address, the larger one first.
func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}
