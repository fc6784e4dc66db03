package acl

import (
	"cmp"
	"strings"
)

// Tags of our ACLs in VPP. An ACL with another tag belongs to another owner and is never modified.
const (
	// TagPrefix starts the tag of each of our ACLs.
	TagPrefix = "troupe/"
	// PermitTag is the tag of the ACL that permits everything. It ends the list of an interface
	// without an ACL of another owner, because VPP drops what no rule of a list matches.
	PermitTag = TagPrefix + "permit"
	// denyPrefix is followed by the class of the interfaces of the ACL.
	denyPrefix = TagPrefix + "deny/"
	// recentSuffix ends the tag of the ACL with recent rules.
	recentSuffix = "/recent"
)

// DenyTag returns the tag of the deny ACL of a class, the first on its interfaces.
func DenyTag(class Class) string { return denyPrefix + class.String() }

// RecentTag returns the tag of the second deny ACL of a class: the rules that were added since the
// first one was large.
func RecentTag(class Class) string { return DenyTag(class) + recentSuffix }

// denyTags are the tags of the deny ACLs of a class, in their order in a list; nil for no class.
func denyTags(class Class) []string {
	if class == 0 {
		return nil
	}
	return []string{DenyTag(class), RecentTag(class)}
}

// compareTags orders tags; in a class the tag of recent rules comes first.
func compareTags(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimSuffix(a, recentSuffix), strings.TrimSuffix(b, recentSuffix)), cmp.Compare(len(b), len(a)))
}

// Ours reports whether an ACL with this tag belongs to Troupe.
func Ours(tag string) bool { return strings.HasPrefix(tag, TagPrefix) }

// classOfTag returns the class of one of our deny ACLs.
func classOfTag(tag string) (Class, bool) {
	for _, class := range classes {
		if tag == DenyTag(class) || tag == RecentTag(class) {
			return class, true
		}
	}
	return 0, false
}
