package nat44

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// TagPrefix starts the tag of every row that Troupe adds. A row without it belongs to another owner
// and is never modified.
const TagPrefix = "troupe/"

// Tag is the content of the tag of a row. VPP returns no other field that holds the owner of a row,
// and does not return its affinity. Its text is "troupe/<hash>/a<seconds>"; 35 characters at most.
type Tag struct {
	// Hash identifies namespace and name of the service, see ServiceHash.
	Hash string
	// Affinity in seconds; 0 = none.
	Affinity uint32
}

// hashEncoding makes hashes of lower case letters and digits.
var hashEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hashLength is the length of the text of a hash: 80 bits.
const hashLength = 16

// ServiceHash returns the hash of a service, by its key "namespace/name". It is the same in every
// run and every version of the agent. It leaves out the name of the port: VPP cannot change a tag
// in place, and renaming a port must not end connections.
func ServiceHash(key string) string {
	sum := sha256.Sum256([]byte(key + "\x00"))
	return hashEncoding.EncodeToString(sum[:10])
}

// ExternalHash is the hash of every row of external configuration. No service has it, because no
// key of a service begins with a slash. All sources share it, because the owner of an entry is kept
// outside of VPP.
func ExternalHash() string { return ServiceHash("/external") }

// External reports whether a row with this tag comes from external configuration.
func External(tag string) bool { return strings.HasPrefix(tag, externalPrefix) }

// externalPrefix begins the tags of external configuration.
var externalPrefix = TagPrefix + ExternalHash() + "/"

// String returns the text that VPP stores.
func (t Tag) String() string {
	return TagPrefix + t.Hash + "/a" + strconv.FormatUint(uint64(t.Affinity), 10)
}

// ParseTag is the reverse of Tag.String; it accepts only what String writes. A tag with our prefix
// that it does not accept comes from another version of the agent: the row is ours, but its
// affinity is unknown.
func ParseTag(text string) (Tag, bool) {
	rest, ours := strings.CutPrefix(text, TagPrefix)
	if !ours {
		return Tag{}, false
	}
	hash, affinity, _ := strings.Cut(rest, "/a")
	if _, err := hashEncoding.DecodeString(hash); err != nil || len(hash) != hashLength {
		return Tag{}, false
	}
	seconds, err := strconv.ParseUint(affinity, 10, 32)
	tag := Tag{Hash: hash, Affinity: uint32(seconds)}
	return tag, err == nil && tag.String() == text // no leading zeros
}

// Ours reports whether a row with this tag belongs to Troupe.
func Ours(tag string) bool { return strings.HasPrefix(tag, TagPrefix) }
