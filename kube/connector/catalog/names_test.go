package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

// TestA11Labels: names that Kubernetes refuses become valid labels, distinct and always the same.
func TestA11Labels(t *testing.T) {
	long := strings.Repeat("long", 20)
	seen := map[string]string{}
	for _, c := range []struct{ prefix, name, want string }{
		{"", "billing", "billing"},
		{"x-", "billing", "x-billing"},
		{"", "UPPER", "upper-9cba1"},
		{"", "upper", "upper"},
		{"", "a_b", "a-b-648fa"},
		{"", "a.b", "a-b-2e733"},
		{"", "a-b", "a-b"},
		{"", "1st", "s-1st-"},
		{"n", "1st", "n1st"},
		{"", "-", "s-"},
		{"", "größe", "gr--"},
		{"", long, strings.Repeat("long", 14) + "l-"},
		{"", long + "er", strings.Repeat("long", 14) + "l-"},
		{"", strings.Repeat("a", 63), strings.Repeat("a", 63)},
		{"", strings.Repeat("a", 64), strings.Repeat("a", 57) + "-"},
	} {
		got := Label(c.prefix, c.name)
		if !strings.HasPrefix(got, c.want) || got != Label(c.prefix, c.name) {
			t.Errorf("Label(%q, %q) = %q, want %q", c.prefix, c.name, got, c.want)
		}
		if problems := validation.IsDNS1035Label(got); len(problems) > 0 {
			t.Errorf("%q of %q: %v", got, c.name, problems)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q are both %q", c.name, other, got)
		}
		seen[got] = c.name
	}
}

// FuzzA29Label: whatever the name and a prefix that begins a label, the result is a label.
func FuzzA29Label(f *testing.F) {
	f.Add("", "UPPER")
	f.Add("svc-", "a.b")
	f.Add("", "\x00\xff-")
	f.Fuzz(func(t *testing.T, prefix, name string) {
		got := Label(prefix, name)
		if problems := validation.IsDNS1035Label(got); len(problems) > 0 {
			t.Errorf("Label(%q, %q) = %q: %v", prefix, name, got, problems)
		}
	})
}

// TestA12Collisions: if several services want one name, the same service gets it in any order, and
// the others are reported.
func TestA12Collisions(t *testing.T) {
	alias := Label("", "V1.api") // a service of exactly this name is registered as well
	first := []Service{{Name: "V1.api"}, {Name: alias}, {Name: "web"}}
	second := []Service{{Name: "web"}, {Name: "db"}}
	want := fmt.Sprint([]string{"db=b/db", alias + "=a/" + alias, "web=a/web"})
	for range 100 {
		rand.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
		rand.Shuffle(len(second), func(i, j int) { second[i], second[j] = second[j], second[i] })
		named, problems := Assign("", []Sourced{{"a", first}, {"b", second}})
		var got []string
		for _, n := range named {
			got = append(got, n.Label+"="+n.Source+"/"+n.Service.Name)
		}
		if fmt.Sprint(got) != want {
			t.Fatalf("named %v, want %v", got, want)
		}
		if len(problems) != 2 || Count(problems)[ReasonCollision] != 2 || problems[0].Service != "V1.api" || problems[1].Source != "b" {
			t.Fatalf("problems %v", problems)
		}
	}
}

// TestA12AssignProperty: every service either has a name or is a problem. Labels are distinct and
// ordered, and the order of services does not matter.
func TestA12AssignProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[aAB._-]{1,3}`), rapid.ID[string])
		var sources []Sourced
		total := 0
		for i := range rapid.IntRange(1, 3).Draw(t, "sources") {
			s := Sourced{Source: fmt.Sprint("s", i)}
			for _, name := range names.Draw(t, "names") {
				s.Services = append(s.Services, Service{Name: name})
				total++
			}
			sources = append(sources, s)
		}
		named, problems := Assign("", sources)
		if len(named)+len(problems) != total {
			t.Fatalf("%d named, %d problems, of %d", len(named), len(problems), total)
		}
		if !slices.IsSortedFunc(named, func(a, b Named) int { return strings.Compare(a.Label, b.Label) }) {
			t.Fatal("not ordered")
		}
		for i := range named[:max(0, len(named)-1)] {
			if named[i].Label == named[i+1].Label {
				t.Fatalf("%s twice", named[i].Label)
			}
		}
		for i := range sources {
			slices.Reverse(sources[i].Services)
		}
		again, _ := Assign("", sources)
		if fmt.Sprint(again) != fmt.Sprint(named) {
			t.Fatalf("depends on the order:\n%v\n%v", named, again)
		}
	})
}
