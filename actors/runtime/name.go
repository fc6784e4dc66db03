package runtime

import "strings"

// EscapeName makes a child name of any key: '/' separates the levels of a path, so in a name it becomes '~'. A service key
// "default/web" becomes "default~web". The rare '~' and '%' are percent-encoded, so that different keys have different names.
func EscapeName(key string) string { return escaper.Replace(key) }

// UnescapeName is the inverse of EscapeName. A key without '~' and '%' passes unchanged, so it may be applied to a key by mistake.
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
