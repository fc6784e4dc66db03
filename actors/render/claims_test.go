package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// newClaims returns claims on names. The first claim wins, unless the name is blocked.
func newClaims(blocked map[string]bool) *Claims[string, int, int] {
	resolve := func(k string, claims []Claim[int]) (int, bool) { return claims[0].Value, !blocked[k] }
	return NewClaims(Rules[string, int, int]{Order: strings.Compare, Resolve: resolve, Same: func(a, b int) bool { return a == b }})
}

// check fails the test where values differ.
func check[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if d := gocmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestClaims(t *testing.T) {
	c := newClaims(nil)
	owner := func(want string) {
		t.Helper()
		if got, ok := c.First("vip"); got.Service != want || !ok {
			t.Errorf("owner is %q, %v; want %q", got.Service, ok, want)
		}
	}
	check(t, "a young service comes", []string{"own", "vip"}, c.Set("default/young", 20, map[string]int{"vip": 2, "own": 2}))
	owner("default/young")
	check(t, "an old service comes", []string{"vip"}, c.Set("default/old", 10, map[string]int{"vip": 1}))
	owner("default/old")
	check(t, "same age, larger key", nil, c.Set("default/older", 10, map[string]int{"vip": 3}))
	owner("default/old")
	check(t, "same age, smaller key", []string{"vip"}, c.Set("apps/web", 10, map[string]int{"vip": 4}))
	owner("apps/web")
	check(t, "order", []string{"apps/web", "default/old", "default/older", "default/young"}, c.Services("vip"))
	values := []int{}
	for _, claim := range c.At("vip") {
		values = append(values, claim.Value)
	}
	check(t, "values", []int{4, 1, 3, 2}, values)

	check(t, "a loser changes", nil, c.Set("default/young", 20, map[string]int{"vip": 5, "own": 2}))
	check(t, "nothing changes", nil, c.Set("apps/web", 10, map[string]int{"vip": 4}))
	check(t, "the owner changes", []string{"vip"}, c.Set("apps/web", 10, map[string]int{"vip": 6}))
	check(t, "the owner gets older", nil, c.Set("apps/web", 9, map[string]int{"vip": 6}))
	check(t, "the owner gets younger", []string{"vip"}, c.Set("apps/web", 30, map[string]int{"vip": 6}))
	owner("default/old")
	check(t, "a loser goes", nil, c.Set("apps/web", 0, nil))
	check(t, "the owner goes", []string{"vip"}, c.Set("default/old", 0, nil))
	owner("default/older")
	check(t, "all", map[string]int{"vip": 3, "own": 2}, c.All())

	check(t, "keys of young", []string{"own", "vip"}, c.Objects("default/young"))
	check(t, "last but one goes", []string{"vip"}, c.Set("default/older", 0, nil))
	check(t, "the last goes", []string{"own", "vip"}, c.Set("default/young", 0, nil))
	check(t, "an unknown service goes", nil, c.Set("default/young", 0, nil))
	if first, claimed := c.First("vip"); claimed {
		t.Errorf("owner is %q", first.Service)
	}
	if len(c.services)+len(c.claims)+len(c.All())+len(slices.Collect(c.Keys())) != 0 {
		t.Errorf("something is left: %+v", c)
	}
}

// TestClaimsFollowAChange: what resolve depends on besides the claims.
func TestClaimsFollowAChange(t *testing.T) {
	blocked := map[string]bool{}
	c := newClaims(blocked)
	c.Set("a/a", 1, map[string]int{"x": 1, "y": 2})
	check(t, "blocked", []string{"x"}, c.Change([]string{"y", "x", "z", "x"}, func() { blocked["x"] = true }))
	check(t, "all", map[string]int{"y": 2}, c.All())
	check(t, "set while blocked", []string{"y"}, c.Set("a/a", 1, map[string]int{"x": 7, "y": 3}))
	check(t, "free", []string{"x"}, c.Change(slices.Collect(c.Keys()), func() { clear(blocked) }))
	check(t, "all", map[string]int{"x": 7, "y": 3}, c.All())
}

// TestClaimsKeepKeys: a slice that was handed out is not changed by what comes later.
func TestClaimsKeepKeys(t *testing.T) {
	c := newClaims(nil)
	c.Set("default/web", 1, map[string]int{"b": 1, "c": 1, "d": 1})
	c.Set("default/other", 2, map[string]int{"b": 1})
	before, at := c.Objects("default/web"), c.At("b")
	want, wantAt := slices.Clone(before), slices.Clone(at)
	c.Set("default/web", 1, map[string]int{"a": 1, "b": 2})
	c.Set("default/third", 0, map[string]int{"b": 1})
	check(t, "keys", want, before)
	check(t, "claims", wantAt, at)
}

// plainClaims is the obvious implementation: keep everything, sort when asked.
type plainClaims struct {
	created map[string]int64
	wishes  map[string]map[string]int
	blocked map[string]bool
}

func (w *plainClaims) owner(key string) (service string) {
	var all []string
	for name, wishes := range w.wishes {
		if _, wants := wishes[key]; wants {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(w.created[a], w.created[b]), cmp.Compare(a, b)) })
}

func (w *plainClaims) all() map[string]int {
	all := map[string]int{}
	for _, wishes := range w.wishes {
		for key := range wishes {
			if !w.blocked[key] {
				all[key] = w.wishes[w.owner(key)][key]
			}
		}
	}
	return all
}

// TestClaimsLikeTheObvious: for any order of events, owners and values equal the obvious
// implementation, and exactly the keys whose value changes are returned.
func TestClaimsLikeTheObvious(t *testing.T) {
	universe, services := []string{"k1", "k2", "k3"}, []string{"a/a", "a/b", "b/a", "b/b"}
	rapid.Check(t, func(t *rapid.T) {
		w := &plainClaims{map[string]int64{}, map[string]map[string]int{}, map[string]bool{}}
		c := newClaims(w.blocked)
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			before := w.all()
			var changed []string
			service := rapid.SampledFrom(services).Draw(t, "service")
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				delete(w.wishes, service)
				changed = c.Set(service, 0, nil)
			case 1:
				changed = c.Change(slices.Clone(universe), func() {
					for _, key := range universe {
						w.blocked[key] = rapid.IntRange(0, 3).Draw(t, "blocked") == 0
					}
				})
			default:
				wishes := map[string]int{}
				for _, key := range universe {
					if rapid.Bool().Draw(t, "wants") {
						wishes[key] = rapid.IntRange(1, 2).Draw(t, "value")
					}
				}
				w.created[service], w.wishes[service] = int64(rapid.IntRange(0, 2).Draw(t, "created")), wishes
				changed = c.Set(service, w.created[service], maps.Clone(wishes))
			}
			after := w.all()
			if d := gocmp.Diff(after, c.All()); d != "" {
				t.Fatalf("all (-want +got):\n%s", d)
			}
			var want []string
			for _, key := range universe {
				old, had := before[key]
				if now, has := after[key]; had != has || old != now {
					want = append(want, key)
				}
				if first, _ := c.First(key); first.Service != w.owner(key) {
					t.Fatalf("owner of %s is %q, want %q", key, first.Service, w.owner(key))
				}
			}
			if d := gocmp.Diff(want, changed, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("changed keys (-want +got):\n%s", d)
			}
		}
	})
}

// TestClaimsOrderDoesNotMatter: the last wish of each service counts, with any history and in any
// order.
func TestClaimsOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "services")
		final, created := make([]map[string]int, n), make([]int64, n)
		for i := range n {
			created[i] = int64(rapid.IntRange(0, 2).Draw(t, "created"))
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"k1", "k2", "k3"}), 0, 3, rapid.ID).Draw(t, "keys") {
				if final[i] == nil {
					final[i] = map[string]int{}
				}
				final[i][key] = i
			}
		}
		name := func(i int) string { return fmt.Sprint("ns/s", i) }
		straight, history := newClaims(nil), newClaims(nil)
		var order []int
		for i := range n {
			straight.Set(name(i), created[i], final[i])
			order = append(order, i)
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 20).Draw(t, "noise") {
			history.Set(name(i), 1, map[string]int{rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key"): i})
		}
		for _, i := range rapid.Permutation(order).Draw(t, "order") {
			history.Set(name(i), created[i], final[i])
		}
		if d := gocmp.Diff(straight.All(), history.All()); d != "" {
			t.Fatalf("all (-straight +after history):\n%s", d)
		}
	})
}

func BenchmarkClaims(b *testing.B) {
	c := newClaims(nil)
	for i := range 10000 {
		c.Set(fmt.Sprint("default/svc-", i), 1, map[string]int{fmt.Sprint("key-", i): i})
	}
	wishes := map[string]int{"key-1799": 1799}
	b.Run("services=10000/set", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Set("default/svc-1799", 1, wishes)
		}
	})
	b.Run("services=10000/all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.All()
		}
	})
}
