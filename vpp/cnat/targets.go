package cnat

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/acl"
)

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
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}
