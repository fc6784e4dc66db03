package external

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// owners shows a merge as text: every entry with its source and, where it does not have it, why.
func owners(m *Merged) (lines []string) {
	for _, e := range m.Entries {
		line := e.Name + " " + e.Source
		if e.Owner != "" {
			line += " (" + e.Owner + ": " + e.Why + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestMerge(t *testing.T) {
	static := func(to string) string {
		return fmt.Sprintf(`"staticMappings": [{"external": "203.0.113.1:80/TCP", "to": [%q]}]`, to)
	}
	file := mustDecode(t, "file", static("10.1.1.1:80")+`, "natAddresses": ["203.0.113.9"], "interfaces": [{"name": "up", "role": "none"}]`)
	node := mustDecode(t, "etcd:n1/x", static("10.1.1.2:80")+`, "interfaces": [{"name": "up", "role": "output"}]`)
	ops := mustDecode(t, "ops", static("10.1.1.3:80"))
	weak := mustDecode(t, "weak", `"priority": 0, `+static("10.1.1.4:80"))
	for _, tt := range []struct {
		name   string
		layers []*Layer
		want   []string
		to     string
		role   Role
	}{
		{"nothing", nil, nil, "", ""},
		{"unknown sources are empty layers", []*Layer{nil, {Source: "x"}}, nil, "", ""},
		{"one", []*Layer{ops}, []string{"203.0.113.1:80/TCP ops"}, "10.1.1.3:80", ""},
		{"by priority", []*Layer{weak, file, ops, node}, []string{
			"203.0.113.1:80/TCP ops", "203.0.113.1:80/TCP etcd:n1/x (ops: ops ranks higher)",
			"203.0.113.1:80/TCP file (ops: ops ranks higher)", "203.0.113.1:80/TCP weak (ops: ops ranks higher)",
			"address 203.0.113.9 file", "interface up etcd:n1/x", "interface up file (etcd:n1/x: etcd:n1/x ranks higher)",
		}, "10.1.1.3:80", RoleOutput},
		{"the layer below is restored", []*Layer{weak, file, node}, []string{
			"203.0.113.1:80/TCP etcd:n1/x", "203.0.113.1:80/TCP file (etcd:n1/x: etcd:n1/x ranks higher)",
			"203.0.113.1:80/TCP weak (etcd:n1/x: etcd:n1/x ranks higher)",
			"address 203.0.113.9 file", "interface up etcd:n1/x", "interface up file (etcd:n1/x: etcd:n1/x ranks higher)",
		}, "10.1.1.2:80", RoleOutput},
		{"and the one below that", []*Layer{weak, file}, []string{
			"203.0.113.1:80/TCP file", "203.0.113.1:80/TCP weak (file: file ranks higher)", "address 203.0.113.9 file", "interface up file",
		}, "10.1.1.1:80", RoleNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Merge(tt.layers)
			if d := cmp.Diff(tt.want, owners(m)); d != "" {
				t.Errorf("owners (-want +got):\n%s", d)
			}
			to := ""
			for _, rows := range m.Rows(nat44.Config{Pads: true}) {
				to += rows[0].Locals[0].String()
			}
			if role := m.Roles()["up"]; to != tt.to || role != tt.role {
				t.Errorf("leads to %q, want %q; role %q, want %q", to, tt.to, role, tt.role)
			}
		})
	}
}

// TestMergeEqualPriorities: the smaller source wins, whatever the order is.
func TestMergeEqualPriorities(t *testing.T) {
	a, b := mustDecode(t, "a", `"natAddresses": ["203.0.113.9"]`), mustDecode(t, "b", `"natAddresses": ["203.0.113.9"]`)
	for _, layers := range [][]*Layer{{a, b}, {b, a}} {
		if d := cmp.Diff([]string{"address 203.0.113.9 a", "address 203.0.113.9 b (a: a ranks higher)"}, owners(Merge(layers))); d != "" {
			t.Error(d)
		}
	}
}

// TestMergeContradictions: two mappings that make VPP translate the same on the way out exclude
// each other. The refused one makes room for a lower layer that contradicts no other.
func TestMergeContradictions(t *testing.T) {
	high := mustDecode(t, "high", `"priority": 900, "identityMappings": ["10.1.1.1"]`)
	middle := mustDecode(t, "middle", `"priority": 800, "staticMappings": [{"external": "203.0.113.1", "to": ["10.1.1.1"]}]`)
	low := mustDecode(t, "low", `"priority": 700, "staticMappings": [{"external": "203.0.113.1", "to": ["10.1.1.2"]}]`)
	m := Merge([]*Layer{low, middle, high})
	if d := cmp.Diff([]string{
		"10.1.1.1 high", "203.0.113.1 middle (high: 10.1.1.1 is translated by 10.1.1.1 of high)", "203.0.113.1 low",
	}, owners(m)); d != "" {
		t.Error(d)
	}
	if rows := m.Rows(nat44.Config{}); len(rows["low"]) != 1 || len(rows["middle"]) != 0 {
		t.Errorf("rows %v", rows)
	}
}

func TestKindsOfEntries(t *testing.T) {
	m := Merge([]*Layer{mustDecode(t, "ops", `"staticMappings": [{"external": "203.0.113.1", "to": ["10.1.1.1"]}], "identityMappings": ["1.2.3.4"],
		"natAddresses": ["203.0.113.9"], "interfaces": [{"name": "up", "role": "output"}]`)})
	var kinds []string
	for _, e := range m.Entries {
		kinds = append(kinds, e.Kind())
	}
	if got := strings.Join(kinds, " "); got != "identity static address interface" {
		t.Errorf("kinds %q", got)
	}
}

// genLayer draws a layer over few keys.
func genLayer(t *rapid.T, source string) *Layer {
	l := &Layer{Source: source, Priority: rapid.IntRange(0, 3).Draw(t, "priority")}
	for i := range byte(4) {
		at := rule.Key{Addr: netip.AddrFrom4([4]byte{203, 0, 113, i})}
		to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, rapid.Byte().Draw(t, "to") % 6}), 0)
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			l.Mappings = append(l.Mappings, Mapping{Key: at, Kind: nat44.Static, To: []netip.AddrPort{to}})
		case 1:
			l.Mappings = append(l.Mappings, Mapping{Key: at, Kind: nat44.Identity})
		case 2:
			at.Port, at.Proto = 80, rule.TCP
			l.Mappings = append(l.Mappings, Mapping{Key: at, To: []netip.AddrPort{netip.AddrPortFrom(to.Addr(), 80)}})
		}
	}
	return l
}

// TestMergeProperties: the order of the layers does not matter; an entry without another owner is
// the only one of its name; no inside is translated twice; a refused entry ranks lower than its
// owner; and layers reduced to the entries that they own give the same result.
func TestMergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var layers []*Layer
		for _, source := range []string{"a", "b", "c", "d"} {
			layers = append(layers, genLayer(t, source))
		}
		m := Merge(layers)
		shuffled := slices.Clone(layers)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Shuffle(len(shuffled), func(i, j int) { //nolint:gosec // a test
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		if d := cmp.Diff(owners(m), owners(Merge(shuffled))); d != "" {
			t.Fatalf("the order matters:\n%s", d)
		}
		rank := map[string]int{}
		for _, l := range layers {
			rank[l.Source] = -l.Priority
		}
		names, inner := map[string]bool{}, map[rule.Key]bool{}
		for _, e := range m.Entries {
			if e.Owner != "" {
				if rank[e.Owner] > rank[e.Source] {
					t.Fatalf("%s of %s is refused for %s", e.Name, e.Source, e.Owner)
				}
				continue
			}
			at, inside := e.Mapping.inside()
			if names[e.Name] || inside && inner[at] {
				t.Fatalf("%s is there twice: %q", e.Name, owners(m))
			}
			names[e.Name], inner[at] = true, inner[at] || inside
		}
		var reduced []*Layer
		for _, l := range layers {
			own := &Layer{Source: l.Source, Priority: l.Priority}
			m.Wanted(func(e *Entry) {
				if e.Source == l.Source {
					own.Mappings = append(own.Mappings, *e.Mapping)
				}
			})
			reduced = append(reduced, own)
		}
		again := Merge(reduced)
		wanted := map[string]string{}
		m.Wanted(func(e *Entry) { wanted[e.Name] = e.Source })
		again.Wanted(func(e *Entry) {
			if wanted[e.Name] != e.Source {
				t.Fatalf("%s goes from %q to %q", e.Name, wanted[e.Name], e.Source)
			}
			delete(wanted, e.Name)
		})
		if len(wanted) > 0 {
			t.Fatalf("lost are %v", wanted)
		}
	})
}
