package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFree(t *testing.T) {
	m := newModel()
	for _, id := range []uint32{1, 2, 5} {
		m.record(testLayout, id, fmt.Sprintf("n%d", id), "")
	}
	m.set(testLayout.id(4), "garbage")
	if diff := cmp.Diff([]uint32{3, 6, 7}, m.keyspace(testLayout, nil).free(3)); diff != "" {
		t.Errorf("lowest free IDs (-want +got):\n%s", diff)
	}
}

// TestUndecodableKeepsLastGood follows one key through good, bad, good, bad and gone.
func TestUndecodableKeepsLastGood(t *testing.T) {
	k := newKeyspace(testLayout)
	key := testLayout.id(3)
	write := func(mod int64, value string) change {
		return change{pair: pair{key: key, value: []byte(value), mod: mod}}
	}
	k.apply([]change{write(2, `{"id":3,"name":"a"}`)})
	if touched := k.apply([]change{write(3, `{"id":3,`)}); !cmp.Equal(touched, []string{"a"}) {
		t.Errorf("touched %v, want a", touched)
	}
	if e := k.ids[3]; e.value.GetName() != "a" || e.mod != 3 || !errors.Is(e.err, ErrUndecodable) || k.idOf("a") != 3 {
		t.Errorf("after a bad write: %+v, want the value of revision 2 with an error", e)
	}
	if !strings.Contains(k.trouble(), key) {
		t.Errorf("trouble %q does not name %s", k.trouble(), key)
	}
	if touched := k.apply([]change{write(4, `{"id":3,"name":"b"}`)}); !cmp.Equal(touched, []string{"a", "b"}) {
		t.Errorf("touched %v, want a and b", touched)
	}
	if k.trouble() != "" || k.idOf("a") != 0 || k.idOf("b") != 3 {
		t.Errorf("after a good write: trouble %q, owners %v", k.trouble(), k.owners)
	}
	k.apply([]change{write(5, `?`)})
	k.apply([]change{{pair: pair{key: key, mod: 6}, deleted: true}})
	if len(k.ids)+len(k.owners)+len(k.problems) != 0 || k.revision != 6 {
		t.Errorf("after the deletion: %+v", k)
	}
}

// TestListKeepsLastGood does the same with a new list, which follows a gap in the watch.
func TestListKeepsLastGood(t *testing.T) {
	m := newModel()
	m.record(testLayout, 3, "a", "u")
	m.set(testLayout.addresses("a"), `{"name":"a","vppAddresses":["10.0.0.1/24"]}`)
	before := m.keyspace(testLayout, nil)
	m.set(testLayout.id(3), "?")
	m.set(testLayout.addresses("a"), "?")
	m.set(testLayout.root()+"colour", "blue")
	after := m.keyspace(testLayout, before)
	if after.idOf("a") != 3 || len(after.addresses["a"].value.GetVppAddresses()) != 1 || len(after.problems) != 3 {
		t.Errorf("good values lost: %+v", after)
	}
	m.drop(testLayout.id(3), testLayout.name("a"), testLayout.addresses("a"), testLayout.root()+"colour")
	if gone := m.keyspace(testLayout, after); len(gone.ids)+len(gone.addresses)+len(gone.problems)+len(gone.owners) != 0 {
		t.Errorf("deleted values kept: %+v", gone)
	}
}

// TestUnknownKeys: keys of a later version are noted, and forgotten when they are deleted.
func TestUnknownKeys(t *testing.T) {
	k := newKeyspace(testLayout)
	odd := pair{key: testLayout.root() + "colour/a", value: []byte("blue"), mod: 2}
	if touched := k.apply([]change{{pair: odd}}); len(touched) != 0 || !strings.Contains(k.trouble(), odd.key) {
		t.Errorf("touched %v, trouble %q", touched, k.trouble())
	}
	if k.apply([]change{{pair: odd, deleted: true}}); k.trouble() != "" {
		t.Errorf("trouble after the deletion: %q", k.trouble())
	}
}

func TestTroubleIsShort(t *testing.T) {
	m := newModel()
	for id := uint32(1); id <= 9; id++ {
		m.set(testLayout.id(id), "?")
	}
	if got := m.keyspace(testLayout, nil).trouble(); !strings.HasSuffix(got, "; and 6 more") || strings.Count(got, "\n") > 0 {
		t.Errorf("got %q", got)
	}
}

// TestApplyEqualsList: applying changes one by one gives the same keyspace as a list.
func TestApplyEqualsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, followed := newModel(), newKeyspace(testLayout)
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		ids := rapid.Uint32Range(1, 4)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{
				testLayout.id(ids.Draw(t, "id")), testLayout.name(names.Draw(t, "name")), testLayout.addresses(names.Draw(t, "owner")),
			}).Draw(t, "key")
			if rapid.Bool().Draw(t, "delete") {
				m.drop(key)
				followed.apply([]change{{pair: pair{key: key, mod: m.revision}, deleted: true}})
				continue
			}
			value := `{"name":"` + names.Draw(t, "in") + `"}`
			if parsed := testLayout.parse(key); parsed.kind == kindID {
				value, _ = encodeRecord(recordOf(parsed.id, names.Draw(t, "holder")))
			} else if parsed.kind == kindName {
				value, _ = encodeRecord(recordOf(ids.Draw(t, "of"), parsed.name))
			}
			m.set(key, value)
			followed.apply([]change{{pair: m.pairs[key]}})
		}
		fresh := m.keyspace(testLayout, nil)
		fresh.revision = followed.revision
		if diff := cmp.Diff(describe(fresh), describe(followed)); diff != "" && len(followed.problems) == 0 {
			t.Fatalf("list and changes differ (-list +changes):\n%s", diff)
		}
		if diff := cmp.Diff(fresh.trouble(), followed.trouble()); diff != "" {
			t.Fatalf("troubles differ (-list +changes):\n%s", diff)
		}
	})
}
