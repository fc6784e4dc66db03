package nat44

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTagText(t *testing.T) {
	hash := ServiceHash("default/web")
	for _, c := range []struct {
		tag  Tag
		want string
	}{
		{Tag{Hash: hash, Weight: 7}, "troupe/" + hash + "/w7"},
		{Tag{Hash: hash, Affinity: 10800, Weight: 1}, "troupe/" + hash + "/a10800/w1"},
	} {
		if got := c.tag.String(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.tag, got, c.want)
		}
	}
	if longest := (Tag{Hash: hash, Affinity: math.MaxUint32, Weight: 255}).String(); len(longest) > maxTag {
		t.Errorf("the longest tag has %d bytes: %q", len(longest), longest)
	}
}

// TestServiceHash fixes the hashes: others would make every agent replace all rows when it is
// upgraded.
func TestServiceHash(t *testing.T) {
	if got, want := ServiceHash("default/web"), "hj4ijb57j6dbskbx"; got != want {
		t.Errorf("hash is %q, want %q", got, want)
	}
}

func TestParseTagRefuses(t *testing.T) {
	hash := ServiceHash("default/web")
	for _, text := range []string{
		"", "troupe", "troupe/", "troupe/" + hash, "troupe/" + hash + "/", "troupe/" + hash + "/w", "troupe/" + hash + "/w0",
		"troupe/" + hash + "/w07", "troupe/" + hash + "/w256", "troupe/" + hash + "/a0/w7", "troupe/" + hash + "/a4294967296/w7",
		"troupe/" + hash + "/w7/a10", "troupe/" + hash + "/a10", "troupe/" + hash + "/a10/w7/x", "troupe/" + hash + "/w7 ",
		"troupe/" + hash[1:] + "/w7", "troupe/" + strings.ToUpper(hash) + "/w7", "Troupe/" + hash + "/w7", "other/" + hash + "/w7",
		"troupe/" + hash + "/w+7", "troupe/" + hash + "/a-1/w7",
	} {
		if tag, ok := ParseTag(text); ok {
			t.Errorf("ParseTag(%q) = %+v", text, tag)
		}
	}
}

func genTag(t *rapid.T) Tag {
	return Tag{
		Hash:     ServiceHash(rapid.String().Draw(t, "key")),
		Affinity: rapid.Uint32().Draw(t, "affinity"),
		Weight:   rapid.Uint8Range(1, 255).Draw(t, "weight"),
	}
}

func TestTagRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tag := genTag(t)
		text := tag.String()
		if len(text) > maxTag || !Ours(text) {
			t.Fatalf("tag %q does not fit", text)
		}
		if got, ok := ParseTag(text); !ok || got != tag {
			t.Fatalf("ParseTag(%q) = %+v, %v; want %+v", text, got, ok, tag)
		}
	})
}

func FuzzParseTag(f *testing.F) {
	f.Add("troupe/gjobejxrk76uug4i/a10800/w7")
	f.Add("troupe/gjobejxrk76uug4i/w1")
	f.Fuzz(func(t *testing.T, text string) {
		if tag, ok := ParseTag(text); ok && tag.String() != text {
			t.Errorf("%q is read as %q", text, tag)
		}
	})
}
