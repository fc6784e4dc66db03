package acl

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// levels are the rules of the two deny ACLs of a class. When an ACL changes VPP applies its rules
// and the rules of all ACLs behind it again, on every interface: many ACLs side by side cost as
// much as a single one. So recent rules are in a small ACL of their own at the end, and the large
// one stays as it is while rules are added. Rules that are not wanted any more leave it, and it
// takes in the recent ones once there are many. All rules drop, so it does not matter in which ACL
// a rule is.
type levels struct {
	base, recent []Rule
	// compact says that the rules of the recent ACL move into the other one, which has to be
	// changed first.
	compact bool
}

// level returns what the ACLs of a class should have, given what they hold. Up to few rules are in
// one ACL, and the recent one has at most few. Without sweep no rule leaves.
func level(base, recent *ACL, wanted, spare []Rule, few int, sweep bool) levels {
	var l levels
	if sweep {
		l.base = both(rulesOf(base), wanted)
		l.recent = Minimal(slices.Concat(both(rulesOf(recent), wanted), without(wanted, l.base)))
		if l.compact = recent == nil || len(l.recent) > few || len(wanted) <= few; l.compact {
			l.base, l.recent = wanted, nil
		}
		if len(l.recent) == 0 && len(wanted) > few {
			l.recent = wanted[:1] // to put it back on all interfaces would cost more than all rules
		}
		return l
	}
	l.base, l.recent = rulesOf(base), rulesOf(recent)
	if len(l.base) <= few {
		l.base = Minimal(slices.Concat(l.base, spare, uncovered(wanted, l.recent)))
		if base == nil && recent == nil && len(l.base) > few {
			l.recent = l.base[:1] // now, because all lists are set anyway
		}
		return l
	}
	l.recent = Minimal(slices.Concat(l.recent, uncovered(Minimal(slices.Concat(wanted, spare)), l.base)))
	return l
}

// rulesOf are the rules of an ACL, which may not be there.
func rulesOf(acl *ACL) []Rule {
	if acl == nil {
		return nil
	}
	return acl.Rules
}

// both returns the rules that are in both lists, which are ordered.
func both(a, b []Rule) []Rule {
	only := without(a, b)
	return without(a, only)
}

// without returns the rules of a that are not in b; both are ordered.
func without(a, b []Rule) []Rule {
	var left []Rule
	for _, r := range a {
		order := -1
		for len(b) > 0 {
			if order = b[0].Compare(r); order >= 0 {
				break
			}
			b = b[1:]
		}
		if order != 0 || len(b) == 0 {
			left = append(left, r)
		}
	}
	return left
}

// uncovered returns the rules that no rule of the lists contains; all are ordered.
func uncovered(rules []Rule, lists ...[]Rule) []Rule {
	for _, list := range lists {
		rules = without(rules, list)
	}
	if len(rules) == 0 {
		return nil
	}
	type source struct {
		key  rule.Key
		from netip.Prefix
	}
	about, sources := map[rule.Key]bool{}, map[source]bool{}
	for _, r := range rules {
		about[r.Key()] = true
	}
	for _, list := range lists {
		for _, r := range list {
			if about[r.Key()] {
				sources[source{r.Key(), r.From}] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
		for bits := r.From.Bits(); bits >= 0; bits-- {
			if sources[source{r.Key(), netip.PrefixFrom(r.From.Addr(), bits).Masked()}] {
				return true
			}
		}
		return false
	})
}
