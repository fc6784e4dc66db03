package nat44

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

// keys returns keys as text.
func keys(all []Key) []string {
	var texts []string
	for _, key := range all {
		texts = append(texts, key.String())
	}
	return texts
}

func TestClaims(t *testing.T) {
	const vip, own = "192.0.2.10:80/TCP", "10.96.0.1:80/TCP"
	c := NewClaims()
	owner := func(want string) {
		t.Helper()
		if got, ok := c.Owner(mustKey(vip)); got != want || !ok {
			t.Errorf("owner is %q, %v; want %q", got, ok, want)
		}
	}
	row := func(backend string) Row { return newRow(vip, backend) }

	check(t, "young comes", []string{own, vip}, keys(c.Set("default/young", 20, []Row{row("10.1.1.2:80"), newRow(own, "10.1.1.2:80")})))
	owner("default/young")
	check(t, "old comes", []string{vip}, keys(c.Set("default/old", 10, []Row{row("10.1.1.1:80")})))
	owner("default/old")
	check(t, "same age, larger key", nil, keys(c.Set("default/older", 10, []Row{row("10.1.1.3:80")})))
	owner("default/old")
	check(t, "same age, smaller key", []string{vip}, keys(c.Set("apps/web", 10, []Row{row("10.1.1.4:80")})))
	owner("apps/web")
	check(t, "order", []string{"apps/web", "default/old", "default/older", "default/young"}, c.Services(mustKey(vip)))
	check(t, "conflicts of young", []*messages.Conflict{{Frontend: vip, Owner: "apps/web"}}, c.Conflicts("default/young"))
	check(t, "conflicts of the owner", nil, c.Conflicts("apps/web"))

	check(t, "loser changes", nil, keys(c.Set("default/young", 20, []Row{row("10.1.1.5:80"), newRow(own, "10.1.1.2:80")})))
	check(t, "nothing changes", nil, keys(c.Set("apps/web", 10, []Row{row("10.1.1.4:80")})))
	check(t, "owner changes", []string{vip}, keys(c.Set("apps/web", 10, []Row{row("10.1.1.6:80")})))
	check(t, "owner goes", []string{vip}, keys(c.Remove("apps/web")))
	owner("default/old")

	check(t, "VPP has it", []string{vip}, keys(c.SetForeign(map[Key]string{mustKey(vip): "static mapping", mustKey("10.0.0.1:1/TCP"): "x"})))
	owner("")
	check(t, "conflicts", []*messages.Conflict{{Frontend: vip, Owner: "VPP: static mapping"}}, c.Conflicts("default/old"))
	check(t, "change behind it", nil, keys(c.Remove("default/old")))
	check(t, "rows", byKey(newRow(own, "10.1.1.2:80")), c.Rows())
	check(t, "free again", []string{vip}, keys(c.SetForeign(nil)))
	owner("default/older")
	if got, _ := c.Row(mustKey(vip)); !got.Equal(row("10.1.1.3:80")) {
		t.Errorf("row is %+v", got)
	}

	check(t, "keys of young", []string{own, vip}, keys(c.Of("default/young")))
	check(t, "last but one goes", []string{vip}, keys(c.Remove("default/older")))
	check(t, "last goes", []string{own, vip}, keys(c.Remove("default/young")))
	check(t, "nobody is known", nil, keys(c.Remove("default/young")))
	if service, claimed := c.Owner(mustKey(vip)); claimed {
		t.Errorf("owner is %q", service)
	}
	if len(c.services)+len(c.claims)+len(c.Rows()) != 0 {
		t.Errorf("something is left: %+v", c)
	}
}

// TestClaimsKeepKeys: a slice that was handed out is not changed by what comes later.
func TestClaimsKeepKeys(t *testing.T) {
	c := NewClaims()
	c.Set("default/web", 1, []Row{newRow("10.96.0.2:80/TCP", "10.1.1.1:80"), newRow("10.96.0.3:80/TCP", "10.1.1.1:80"), newRow("10.96.0.4:80/TCP", "10.1.1.1:80")})
	before := c.Of("default/web")
	want := slices.Clone(before)
	c.Set("default/web", 1, []Row{newRow("10.96.0.1:80/TCP", "10.1.1.1:80")})
	check(t, "keys", want, before)
}

// wishes is the obvious implementation: keep everything, sort when asked.
type wishes struct {
	services map[string]wish
	foreign  map[Key]string
}

type wish struct {
	created int64
	rows    map[Key]Row
}

func (w *wishes) row(key Key) (string, Row, bool) {
	if _, foreign := w.foreign[key]; foreign {
		return "", Row{}, false
	}
	var all []string
	for service, wish := range w.services {
		if _, wants := wish.rows[key]; wants {
			all = append(all, service)
		}
	}
	if len(all) == 0 {
		return "", Row{}, false
	}
	winner := slices.MinFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(w.services[a].created, w.services[b].created), cmp.Compare(a, b))
	})
	return winner, w.services[winner].rows[key], true
}

// TestClaimsLikeTheObvious: whatever the order of events, owner and row are those of the obvious implementation, and exactly the keys whose
// row changes are returned.
func TestClaimsLikeTheObvious(t *testing.T) {
	universe := []Key{mustKey("10.0.0.1:80/TCP"), mustKey("10.0.0.1:80/UDP"), mustKey("10.0.0.2:80/TCP")}
	services := []string{"a/a", "a/b", "b/a", "b/b"}
	rapid.Check(t, func(t *rapid.T) {
		c, w := NewClaims(), &wishes{services: map[string]wish{}}
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			before := map[Key]Row{}
			for _, key := range universe {
				if _, row, ok := w.row(key); ok {
					before[key] = row
				}
			}
			var changed []Key
			service := rapid.SampledFrom(services).Draw(t, "service")
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				delete(w.services, service)
				changed = c.Remove(service)
			case 1:
				w.foreign = map[Key]string{}
				for _, key := range universe {
					if rapid.IntRange(0, 3).Draw(t, "foreign") == 0 {
						w.foreign[key] = "x"
					}
				}
				changed = c.SetForeign(w.foreign)
			default:
				next := wish{int64(rapid.IntRange(0, 2).Draw(t, "created")), map[Key]Row{}}
				for _, key := range universe {
					if rapid.Bool().Draw(t, "wants") {
						backend := rapid.SampledFrom([]string{"10.1.1.1:80", "10.1.1.2:80"}).Draw(t, "backend")
						next.rows[key] = newRow(key.String(), backend)
					}
				}
				w.services[service] = next
				changed = c.Set(service, next.created, slices.Collect(maps.Values(next.rows)))
			}
			var want []Key
			for _, key := range universe {
				owner, row, ok := w.row(key)
				if got, found := c.Row(key); found != ok || found && !got.Equal(row) {
					t.Fatalf("row of %s is %+v, %v; want %+v, %v", key, got, found, row, ok)
				}
				if got, _ := c.Owner(key); got != owner {
					t.Fatalf("owner of %s is %q, want %q", key, got, owner)
				}
				old, had := before[key]
				if had != ok || ok && !old.Equal(row) {
					want = append(want, key)
				}
			}
			if d := diff(keys(want), keys(changed)); d != "" {
				t.Fatalf("changed keys:\n%s", d)
			}
		}
	})
}
