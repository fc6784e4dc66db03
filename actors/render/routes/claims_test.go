package routes

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

func newAdapter(config Config) *adapter { return New(config).Kind.(*adapter) }

// differing are the prefixes, ordered, for which two states want different routes.
func differing(before, after map[netip.Prefix]routes.Route) (all []netip.Prefix) {
	union := maps.Clone(before)
	maps.Copy(union, after)
	for p := range union {
		if before[p] != after[p] {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return all
}

// TestAdapterTellsEveryChange: what Plan and Surroundings tell is exactly the difference of what is
// wanted, and that depends on what was said last, not on the way there.
func TestAdapterTellsEveryChange(t *testing.T) {
	addresses := []string{"10.96.0.1", "203.0.113.7", "192.168.50.9", "2001:db8::7"}
	begin := func(taken []string) *messages.Begin {
		return &messages.Begin{NodeAddresses: taken, Node: &messages.NodeContext{}}
	}
	set := func(connected bool) *messages.InterfaceSet {
		s := &messages.InterfaceSet{Complete: true, Interfaces: []*messages.Interface{{Name: "uplink0"}}}
		if connected {
			s.Interfaces[0].Addresses = []string{"192.168.50.1/24"}
		}
		return s
	}
	config := Config{Networks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("203.0.113.7/32")}}
	rapid.Check(t, func(t *rapid.T) {
		a := newAdapter(config)
		views := map[string]*messages.ServiceView{}
		surroundings := render.Surroundings{Begin: begin(nil), Set: set(false)}
		a.Settle(surroundings)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := a.claims.All()
			a.claims.News()
			if rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				taken := rapid.SliceOfNDistinct(rapid.SampledFrom(addresses), 0, 2, rapid.ID).Draw(t, "taken")
				surroundings = render.Surroundings{Begin: begin(taken), Set: set(rapid.Bool().Draw(t, "connected"))}
				a.Settle(surroundings)
			} else {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "service")
				views[name] = nil
				if rapid.IntRange(0, 3).Draw(t, "gone") > 0 {
					views[name] = &messages.ServiceView{Key: name}
					for _, addr := range rapid.SliceOfNDistinct(rapid.SampledFrom(addresses), 0, 4, rapid.ID).Draw(t, "addresses") {
						views[name].Frontends = append(views[name].Frontends, &messages.Frontend{
							Address: addr, Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action(rapid.IntRange(0, 2).Draw(t, "action")),
							Scope: rapid.SampledFrom([]messages.Scope{messages.Scope_SCOPE_CLUSTER, messages.Scope_SCOPE_EXTERNAL}).Draw(t, "scope"),
						})
					}
				}
				a.Plan(name, views[name])
			}
			changed, _ := a.claims.News()
			if d := cmp.Diff(differing(before, a.claims.All()), changed, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Prefix{})); d != "" {
				t.Fatalf("changed (-difference +told):\n%s", d)
			}
		}
		fresh := newAdapter(config)
		for name, view := range views {
			fresh.Plan(name, view)
		}
		fresh.Settle(surroundings)
		if d := cmp.Diff(fresh.claims.All(), a.claims.All(), cmpopts.EquateComparable(netip.Prefix{})); d != "" {
			t.Fatalf("the way matters:\n%s", d)
		}
	})
}
