package acl

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Standing is the difference between what VPP drops and what it should drop, by frontend.
type Standing struct {
	// Missing are the frontends for which VPP does not drop enough on some interface. Their rows have to wait.
	Missing map[frontend.Key]bool
	// Surplus are the frontends for which VPP drops too much on some interface.
	Surplus map[frontend.Key]bool
}

// Compare returns the frontends whose rules differ. With have nil, the state of VPP is unknown and everything wanted counts as missing.
func Compare(have *State, want *Want) Standing {
	s := Standing{Missing: map[frontend.Key]bool{}, Surplus: map[frontend.Key]bool{}}
	if have == nil {
		for _, r := range want.Rules {
			s.Missing[r.Key()] = true
		}
		return s
	}
	for _, class := range classes {
		wanted, held := forInterface(want.Rules, class), have.ACLs[DenyTag(class)].Rules
		if have.stands(class) {
			uncovered(held, wanted, s.Surplus)
		}
		if have.lacks(class, want.Interfaces) {
			held = nil
		}
		if hasClass(want.Interfaces, class) {
			uncovered(wanted, held, s.Missing)
		}
	}
	return s
}

// hasClass reports whether any interface is of a class.
func hasClass(interfaces map[uint32]Class, class Class) bool {
	for _, of := range interfaces {
		if of == class {
			return true
		}
	}
	return false
}

// stands reports whether the deny ACL of a class is attached to any interface.
func (s *State) stands(class Class) bool {
	acl, found := s.ACLs[DenyTag(class)]
	for _, lists := range s.Lists {
		if found && slices.Contains(lists.Input, acl.Index) {
			return true
		}
	}
	return false
}

// lacks reports whether the deny ACL of a class is missing on some interface of that class.
func (s *State) lacks(class Class, interfaces map[uint32]Class) bool {
	acl, found := s.ACLs[DenyTag(class)]
	for index, of := range interfaces {
		if of == class && !(found && slices.Contains(s.Lists[index].Input, acl.Index)) {
			return true
		}
	}
	return false
}

// uncovered enters the frontends of those rules that no rule in by contains.
func uncovered(rules, by []Rule, into map[frontend.Key]bool) {
	if slices.Equal(rules, by) {
		return
	}
	type source struct {
		key  frontend.Key
		from netip.Prefix
	}
	others := make(map[source]bool, len(by))
	for _, r := range by {
		others[source{r.Key(), r.From}] = true
	}
	for _, r := range rules {
		covered := false
		for bits := r.From.Bits(); bits >= 0 && !covered; bits-- {
			covered = others[source{r.Key(), netip.PrefixFrom(r.From.Addr(), bits).Masked()}]
		}
		if !covered {
			into[r.Key()] = true
		}
	}
}
