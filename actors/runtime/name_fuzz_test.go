package runtime

import (
	"strings"
	"testing"
)

// FuzzName: every key has a name of its own without a '/', and the name gives the key back.
func FuzzName(f *testing.F) {
	for _, key := range []string{"default/web", "a~b/c%d", "%25", "%7E~/", "", "~"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		name := EscapeName(key)
		if strings.Contains(name, "/") {
			t.Fatalf("name %q of %q has more than one level", name, key)
		}
		if got := UnescapeName(name); got != key {
			t.Fatalf("%q became %q by way of %q", key, got, name)
		}
	})
}
