package acl

import "strings"

// Tags of our ACLs in VPP. An ACL with another tag belongs to somebody else and is never touched.
const (
	// TagPrefix starts the tag of every ACL of ours.
	TagPrefix = "troupe/"
	// PermitTag is the tag of the ACL that permits everything. It ends the list of an interface on which there is no ACL of others, because
	// VPP drops what no rule of a list matches.
	PermitTag = TagPrefix + "permit"
	// denyPrefix is followed by the class of the interfaces that the ACL is for.
	denyPrefix = TagPrefix + "deny/"
)

// DenyTag returns the tag of the ACL that stands first on interfaces of a class.
func DenyTag(class Class) string { return denyPrefix + class.String() }

// Ours reports whether an ACL with this tag belongs to an agent of ours.
func Ours(tag string) bool { return strings.HasPrefix(tag, TagPrefix) }

// classOfTag is the reverse of DenyTag.
func classOfTag(tag string) (Class, bool) {
	for _, class := range classes {
		if tag == DenyTag(class) {
			return class, true
		}
	}
	return 0, false
}
