package acl

import (
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Standing is the difference between what VPP drops and what it should drop, by frontend.
type Standing struct {
	// Missing are the frontends for which VPP does not drop enough on some interface. Their
	// rows have to wait.
	Missing map[rule.Key]bool
	// Surplus are the frontends for which VPP drops too much on some interface.
	Surplus map[rule.Key]bool
}

// Compare returns the frontends whose rules differ. With have nil, the state of VPP is unknown and
// everything wanted counts as missing.
func Compare(have *State, want *Want) Standing {
	s := Standing{Missing: map[rule.Key]bool{}, Surplus: map[rule.Key]bool{}}
	if have == nil {
		for _, r := range want.Rules {
			s.Missing[r.Key()] = true
		}
		return s
	}
	for _, class := range classes {
		wanted := forInterface(want.Rules, class)
		var standing, everywhere [][]Rule
		for _, tag := range denyTags(class) {
			if have.stands(tag) {
				standing = append(standing, have.ACLs[tag].Rules)
			}
			if !have.lacks(tag, class, want.Interfaces) {
				everywhere = append(everywhere, have.ACLs[tag].Rules)
			}
		}
		for _, rules := range standing {
			enter(uncovered(rules, wanted), s.Surplus)
		}
		if slices.Contains(slices.Collect(maps.Values(want.Interfaces)), class) {
			enter(uncovered(wanted, everywhere...), s.Missing)
		}
	}
	return s
}

// stands reports whether one of our ACLs is attached to any interface.
func (s *State) stands(tag string) bool {
	acl, found := s.ACLs[tag]
	for _, lists := range s.Lists {
		if found && slices.Contains(lists.Input, acl.Index) {
			return true
		}
	}
	return false
}

// lacks reports whether one of our ACLs is missing on some interface of a class.
func (s *State) lacks(tag string, class Class, interfaces map[uint32]Class) bool {
	acl, found := s.ACLs[tag]
	for index, of := range interfaces {
		if of == class && !(found && slices.Contains(s.Lists[index].Input, acl.Index)) {
			return true
		}
	}
	return false
}

// enter enters the frontends of rules.
func enter(rules []Rule, into map[rule.Key]bool) {
	for _, r := range rules {
		into[r.Key()] = true
	}
}
