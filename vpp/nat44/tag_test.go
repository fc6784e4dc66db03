package nat44

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// maxTag is the longest tag VPP keeps: string[64] with a NUL at the end.
const maxTag = 63

func TestTagText(t *testing.T) {
	hash := ServiceHash("default/web")
	for _, c := range []struct {
		tag  Tag
		want string
	}{
		{Tag{Hash: hash}, "troupe/" + hash + "/a0"},
		{Tag{Hash: hash, Affinity: 10800}, "troupe/" + hash + "/a10800"},
	} {
		if got := c.tag.String(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.tag, got, c.want)
		}
	}
	if longest := (Tag{Hash: hash, Affinity: math.MaxUint32}).String(); len(longest) > maxTag {
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
		"", "troupe", "troupe/", "troupe/" + hash, "troupe/" + hash + "/", "troupe/" + hash + "/a", "troupe/" + hash + "/a00",
		"troupe/" + hash + "/a010", "troupe/" + hash + "/a4294967296", "troupe/" + hash + "/a10/w7", "troupe/" + hash + "/w7",
		"troupe/" + hash + "/a7 ", "troupe/" + hash[1:] + "/a7", "troupe/" + strings.ToUpper(hash) + "/a7", "Troupe/" + hash + "/a7",
		"other/" + hash + "/a7", "troupe/" + hash + "/a+7", "troupe/" + hash + "/a-1",
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
	f.Add("troupe/gjobejxrk76uug4i/a10800")
	f.Add("troupe/gjobejxrk76uug4i/a0")
	f.Fuzz(func(t *testing.T, text string) {
		if tag, ok := ParseTag(text); ok && tag.String() != text {
			t.Errorf("%q is read as %q", text, tag)
		}
	})
}
