package service_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube/service"
)

// TestBudgetOfTheNode: a namespace has at least an equal share of the node, and a small namespace
// gets all that it asks for.
func TestBudgetOfTheNode(t *testing.T) {
	type set struct {
		key     string
		created int64
		bytes   int
	}
	for name, tt := range map[string]struct {
		sets []set
		want []string // refused
	}{
		"room for all":                                   {[]set{{"a/1", 1, 60}, {"b/1", 2, 60}}, nil},
		"an older namespace does not take all":           {[]set{{"a/1", 1, 60}, {"a/2", 1, 60}, {"b/1", 2, 60}}, []string{"a/2"}},
		"a small namespace has what it asks for":         {[]set{{"a/1", 1, 60}, {"a/2", 1, 60}, {"b/1", 2, 10}}, []string{"a/2"}},
		"what it leaves belongs to the others":           {[]set{{"a/1", 1, 60}, {"a/2", 1, 50}, {"b/1", 2, 10}}, nil},
		"another namespace takes what exceeds the share": {[]set{{"a/1", 1, 40}, {"a/2", 2, 40}, {"b/1", 3, 40}, {"c/1", 4, 40}}, []string{"a/2"}},
		"room again": {[]set{{"a/1", 1, 60}, {"a/2", 1, 60}, {"b/1", 2, 60}, {"b/1", 2, 0}}, nil},
	} {
		for _, of := range []func(int) service.Size{
			func(n int) service.Size { return service.Size{VPP: n} }, func(n int) service.Size { return service.Size{Agent: n} },
		} {
			b := service.NewBudget(service.Limits{Node: of(120)})
			refused := map[string]bool{}
			for _, s := range tt.sets {
				b.Set(s.key, s.created, of(s.bytes))
				for _, key := range b.Settle() {
					if refused[key] = b.Refused(key) != ""; !refused[key] {
						delete(refused, key)
					}
				}
			}
			if got := slices.Sorted(maps.Keys(refused)); !slices.Equal(got, tt.want) {
				t.Errorf("%s: refused %v, want %v", name, got, tt.want)
			}
		}
	}
}

// TestBudgetNeverExceedsTheNode: the served services always fit into the node, and a namespace that
// asks for no more than an equal share is served as a whole.
func TestBudgetNeverExceedsTheNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := service.Limits{Node: service.Size{VPP: 100, Agent: 60}}
		b := service.NewBudget(limits)
		sizes := map[string]service.Size{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := fmt.Sprintf("%c/%d", 'a'+rapid.IntRange(0, 4).Draw(t, "namespace"), rapid.IntRange(0, 5).Draw(t, "service"))
			sizes[key] = service.Size{VPP: rapid.IntRange(0, 40).Draw(t, "vpp"), Agent: rapid.IntRange(0, 30).Draw(t, "agent")}
			b.Set(key, int64(rapid.IntRange(0, 2).Draw(t, "created")), sizes[key])
			b.Settle()
			var served service.Size
			asked, refused := map[byte]service.Size{}, map[byte]bool{}
			for key, size := range sizes {
				of := asked[key[0]]
				asked[key[0]] = service.Size{VPP: of.VPP + size.VPP, Agent: of.Agent + size.Agent}
				if b.Refused(key) != "" {
					refused[key[0]] = true
				} else {
					served.VPP, served.Agent = served.VPP+size.VPP, served.Agent+size.Agent
				}
			}
			if served.VPP > 100 || served.Agent > 60 {
				t.Fatalf("served %v of %v", served, sizes)
			}
			for namespace := range refused {
				if of := asked[namespace]; of.VPP <= 100/len(asked) && of.Agent <= 60/len(asked) {
					t.Fatalf("%c asks for %v of %v and is refused", namespace, of, sizes)
				}
			}
		}
	})
}

func TestBudget(t *testing.T) {
	type set struct {
		key       string
		created   int64
		frontends int
	}
	for name, tt := range map[string]struct {
		sets []set
		want []string // refused
	}{
		"all have room":                                 {[]set{{"a/1", 1, 5}, {"a/2", 2, 5}}, nil},
		"the youngest has none":                         {[]set{{"a/3", 3, 5}, {"a/1", 1, 5}, {"a/2", 2, 5}}, []string{"a/3"}},
		"a younger one may fit":                         {[]set{{"a/1", 1, 5}, {"a/2", 2, 6}, {"a/3", 3, 5}}, []string{"a/2"}},
		"as old: the smaller key":                       {[]set{{"a/2", 1, 6}, {"a/1", 1, 6}}, []string{"a/2"}},
		"another namespace has its own":                 {[]set{{"a/1", 1, 10}, {"b/1", 2, 10}}, nil},
		"one that is refused by itself takes nothing":   {[]set{{"a/1", 1, 100}, {"a/2", 2, 10}}, nil},
		"an older one that grows":                       {[]set{{"a/1", 1, 5}, {"a/2", 2, 5}, {"a/1", 1, 6}}, []string{"a/2"}},
		"one that grows does not push out an older one": {[]set{{"a/1", 1, 5}, {"a/2", 2, 5}, {"a/2", 2, 9}}, []string{"a/2"}},
		"room again":                                    {[]set{{"a/1", 1, 5}, {"a/2", 2, 6}, {"a/1", 1, 0}}, nil},
	} {
		b := service.NewBudget(service.Limits{Service: service.Size{Frontends: 20}, Namespace: service.Size{Frontends: 10}})
		refused := map[string]bool{}
		for _, s := range tt.sets {
			b.Set(s.key, s.created, service.Size{Frontends: s.frontends})
			for _, key := range b.Settle() {
				if refused[key] = b.Refused(key) != ""; !refused[key] {
					delete(refused, key)
				}
			}
		}
		if got := slices.Sorted(maps.Keys(refused)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: refused %v, want %v", name, got, tt.want)
		}
	}
}

// TestBudgetDoesNotDependOnTheWay: the refused services follow from the present sizes alone, and
// Settle names exactly the services whose refusal has changed.
func TestBudgetDoesNotDependOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := service.Limits{Service: service.Size{Frontends: 8, Backends: 30}, Namespace: service.Size{Frontends: 12, Backends: 40}}
		b := service.NewBudget(limits)
		type ask struct {
			key     string
			created int64
			size    service.Size
		}
		asks, before := map[string]ask{}, map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "sets") {
				key := fmt.Sprintf("%c/%d", 'a'+rapid.IntRange(0, 1).Draw(t, "namespace"), rapid.IntRange(0, 5).Draw(t, "service"))
				one := ask{key, int64(rapid.IntRange(0, 2).Draw(t, "created")), service.Size{
					Frontends: rapid.IntRange(0, 9).Draw(t, "frontends"), Backends: rapid.IntRange(0, 31).Draw(t, "backends"),
				}}
				asks[key] = one
				b.Set(one.key, one.created, one.size)
			}
			var changed []string
			given, now := map[byte]service.Size{}, map[string]bool{}
			order := slices.SortedFunc(maps.Values(asks), func(x, y ask) int { return cmp.Or(cmp.Compare(x.created, y.created), cmp.Compare(x.key, y.key)) })
			for _, one := range order {
				sum := service.Size{Frontends: given[one.key[0]].Frontends + one.size.Frontends, Backends: given[one.key[0]].Backends + one.size.Backends}
				switch {
				case limits.Exceeded(one.size) != "":
				case sum.Frontends > 12 || sum.Backends > 40:
					now[one.key] = true
				default:
					given[one.key[0]] = sum
				}
			}
			for key := range asks {
				if now[key] != before[key] {
					changed = append(changed, key)
				}
			}
			slices.Sort(changed)
			if got := b.Settle(); !slices.Equal(got, changed) {
				t.Fatalf("changed %v, want %v of %v", got, changed, asks)
			}
			for key := range asks {
				if got := b.Refused(key) != ""; got != now[key] {
					t.Fatalf("%s is refused: %t, want %t of %v", key, got, now[key], asks)
				}
			}
			before = now
		}
	})
}
