package runtime

import (
	"maps"
	"slices"
	"strings"
)

// EscapeName makes a child name of any key: '/' separates the levels of a path, so in a name it
// becomes '~'. A service key "default/web" becomes "default~web". The rare '~' and '%' are
// percent-encoded, so that different keys have different names.
func EscapeName(key string) string { return escaper.Replace(key) }

// UnescapeName is the inverse of EscapeName. A key without '~' and '%' passes unchanged, so it may
// be applied to a key by mistake.
func UnescapeName(name string) string { return unescaper.Replace(name) }

// Both are immutable and safe for concurrent use.
var (
	escaper   = strings.NewReplacer("%", "%25", "~", "%7E", "/", "~")
	unescaper = strings.NewReplacer("%25", "%", "%7E", "~", "~", "/")
)

// parentPath is the path above, "" for a root actor.
func parentPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// childPath is the path of a child of the actor.
func childPath(c *Context, name string) string { return c.Path() + "/" + EscapeName(name) }

// baseName is the last element of a path.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// sortedKeys makes the order of a map repeatable.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
