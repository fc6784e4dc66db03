package runtime

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEscapeName(t *testing.T) {
	for _, c := range []struct{ key, name string }{
		{"", ""},
		{"link", "link"},
		{"default/web", "default~web"},
		{"a/b/c", "a~b~c"},
		{"a~b", "a%7Eb"},
		{"a%7Eb", "a%257Eb"},
		{"100%", "100%25"},
	} {
		if got := EscapeName(c.key); got != c.name {
			t.Errorf("EscapeName(%q) = %q, want %q", c.key, got, c.name)
		}
		if got := UnescapeName(c.name); got != c.key {
			t.Errorf("UnescapeName(%q) = %q, want %q", c.name, got, c.key)
		}
	}
	if key := "default/web-1.example"; UnescapeName(key) != key {
		t.Errorf("a service key does not pass UnescapeName unchanged: %q", UnescapeName(key))
	}
}

// TestEscapeNameIsReversible: different keys have different names, and a name is one element of a
// path.
func TestEscapeNameIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOfN(rapid.RuneFrom([]rune("ab/~%257E.é")), 0, 12, -1).Draw(t, "key")
		name := EscapeName(key)
		if strings.Contains(name, "/") || UnescapeName(name) != key {
			t.Fatalf("%q -> %q -> %q", key, name, UnescapeName(name))
		}
	})
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ path, parent, base string }{
		{"agent", "", "agent"},
		{"agent/world", "agent", "world"},
		{"agent/world/services/default~web", "agent/world/services", "default~web"},
	} {
		if parentPath(c.path) != c.parent || baseName(c.path) != c.base {
			t.Errorf("%s: parent %q base %q", c.path, parentPath(c.path), baseName(c.path))
		}
	}
}
