package acl

import "strings"

// Tags of our ACLs in VPP. An ACL with another tag belongs to another owner and is never modified.
const (
	// TagPrefix starts the tag of each of our ACLs.
	TagPrefix = "troupe/"
	// PermitTag is the tag of the ACL that permits everything. It ends the list of an interface without an ACL of another owner, because
	// VPP drops what no rule of a list matches.
	PermitTag = TagPrefix + "permit"
	// denyPrefix is followed by the class of the interfaces of the ACL.
	denyPrefix = TagPrefix + "deny/"
)

// DenyTag returns the tag of the deny ACL of a class, the first on its interfaces.
func DenyTag(class Class) string { return denyPrefix + class.String() }

// Ours reports whether an ACL with this tag belongs to Troupe.
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
