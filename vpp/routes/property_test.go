package routes

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"pgregory.net/rapid"
)

// places are the prefixes of the properties: so few that all routes meet.
var places = []netip.Prefix{
	pfx("10.96.0.0/16"), pfx("10.96.0.1/32"), pfx("192.168.50.9/32"), pfx("203.0.113.7/32"), pfx("fd96::/108"), pfx("fd96::1/128"),
}

// genWant draws what VPP should hold.
func genWant(t *rapid.T) Want {
	want := Want{}
	for _, p := range places {
		if rapid.Bool().Draw(t, "wanted") {
			want[p] = Route{Kind: rapid.SampledFrom([]Kind{Reject, Drop}).Draw(t, "kind")}
		}
	}
	return want
}

// others are sources of other owners, better and worse than ours.
var others = []uint8{fromInterface, fromAPI, fromNeighbour, fromNAT, 16}

// stir adds or deletes a route of another client.
func stir(t *rapid.T, m *model) {
	prefix, id := rapid.SampledFrom(places).Draw(t, "their prefix"), rapid.SampledFrom(others).Draw(t, "their source")
	if rapid.Bool().Draw(t, "theirs comes") {
		m.set(prefix, id, toNormal)
	} else {
		m.unset(prefix, id)
	}
}

// genModel draws a VPP that others use, perhaps with leftovers of earlier agents.
func genModel(t *rapid.T) *model {
	m := newModel()
	for range rapid.IntRange(0, 4).Draw(t, "routes of others") {
		stir(t, m)
	}
	for range rapid.IntRange(0, 4).Draw(t, "sources") {
		ours := fib.FibSource{Name: sourceName, Priority: sourcePriority}
		s := rapid.SampledFrom([]fib.FibSource{
			ours, ours, {Name: sourceName, Priority: 0xd7}, {Name: "other client", Priority: 0xcf},
		}).Draw(t, "source")
		id := m.register(s.Name, s.Priority)
		for _, p := range places {
			if rapid.IntRange(0, 3).Draw(t, "left over") == 0 {
				m.set(p, id, rapid.SampledFrom([]fib_types.FibPathType{toUnreach, toDrop, toNormal}).Draw(t, "path"))
			}
		}
	}
	return m
}

// theirs returns the routes of other owners.
func (m *model) theirs() map[Place]fib_types.FibPathType {
	all := map[Place]fib_types.FibPathType{}
	for prefix, said := range m.entries {
		for id, path := range said {
			if n := m.registered[id].Name; n != "troupe" && n != "troupe-yield" {
				all[Place{prefix, id}] = path
			}
		}
	}
	return all
}

// ours returns our routes, whether they win or not.
func (m *model) ours() map[Place]Kind {
	all, foreign := map[Place]Kind{}, m.theirs()
	for prefix, said := range m.entries {
		for id, path := range said {
			if _, is := foreign[Place{prefix, id}]; !is {
				all[Place{prefix, id}] = kindOf([]fib_types.FibPath{{Type: path}})
			}
		}
	}
	return all
}

// wanted returns our routes as they should be.
func wanted(have *State, want Want) map[Place]Kind {
	all := map[Place]Kind{}
	for prefix, route := range want {
		all[Place{prefix, have.Source}] = route.Kind
	}
	return all
}

// settle reads and compares until nothing is left to do, and returns the state then. One round is
// enough, except for a route beneath another route of ours: it is found when the upper one has
// gone, so there are as many rounds as routes of ours for one prefix.
func (m *model) settle(t *rapid.T, have *State, want Want) *State {
	deepest := 1
	for _, said := range m.entries {
		mine := 0
		for id := range said {
			if n := m.registered[id].Name; n == "troupe" || n == "troupe-yield" {
				mine++
			}
		}
		deepest = max(deepest, mine)
	}
	for range deepest {
		have = m.read(t, have, want)
		m.apply(t, have, Diff(have, want, true))
	}
	if again := Diff(m.read(t, have, want), want, true); len(again) > 0 {
		t.Fatalf("left after %d rounds:\n%v", deepest, again)
	}
	return have
}

// TestDiffConverges: whatever VPP holds, the operations turn it into what it should hold and
// succeed; no route of another owner is touched; then nothing is left to do, after a read as well
// as by the record; and a better route keeps its packets.
func TestDiffConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := genModel(t), genWant(t)
		foreign := m.theirs()
		have := m.settle(t, nil, want)

		if d := diff(foreign, m.theirs()); d != "" {
			t.Fatalf("routes of others have changed:\n%s", d)
		}
		if again := Diff(have, want, true); len(again) > 0 {
			t.Fatalf("recorded so that these are left:\n%v", again)
		}
		got := m.read(t, have, want)
		if d := diff(have.Source, got.Source); d != "" {
			t.Fatalf("source (-recorded +read):\n%s", d)
		}
		for place, kind := range wanted(got, want) {
			if m.ours()[place] != kind {
				t.Fatalf("%s of source %d is %s, want %s", place.Prefix, place.Source, m.ours()[place], kind)
			}
			id, _ := m.best(place.Prefix)
			better := false
			for p := range foreign {
				theirs, ours := m.registered[p.Source], m.registered[place.Source]
				better = better || p.Prefix == place.Prefix &&
					(theirs.Priority < ours.Priority || theirs.Priority == ours.Priority && theirs.ID < ours.ID)
			}
			if (id != place.Source) != better {
				t.Fatalf("%s is won by source %d; another client has a better route: %v", place.Prefix, id, better)
			}
		}
	})
}

// TestDiffWithoutSweep: unwanted routes stay as they are, wanted ones are there.
func TestDiffWithoutSweep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := genModel(t), genWant(t)
		before := m.ours()
		have := m.read(t, nil, want)
		m.apply(t, have, Diff(have, want, false))
		after := m.ours()
		for place, kind := range before {
			if _, is := want[place.Prefix]; !is && after[place] != kind {
				t.Fatalf("the unwanted %s of source %d has changed", place.Prefix, place.Source)
			}
		}
		for place, kind := range wanted(have, want) {
			if after[place] != kind {
				t.Fatalf("the wanted %s is not there", place.Prefix)
			}
		}
	})
}

// TestDiffIsMinimal: no place is touched twice, and no place that is as it should be.
func TestDiffIsMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := genModel(t), genWant(t)
		have := m.read(t, nil, want)
		touched, sent := map[Place]bool{}, len(m.sent)
		results := Apply(t.Context(), m, Diff(have, want, true))
		for _, r := range results {
			place := Place{r.Op.Prefix, r.Op.Source}
			if r.Op.Verb == Register {
				place.Prefix = netip.Prefix{}
			}
			if touched[place] {
				t.Fatalf("%s is done twice", r.Op)
			}
			touched[place] = true
			if kind, held := have.Routes[place]; held && r.Op.Verb == Add && kind == r.Op.Kind {
				t.Fatalf("%s is not needed", r.Op)
			}
		}
		if len(m.sent)-sent != len(results) {
			t.Fatalf("%d messages for %d operations", len(m.sent)-sent, len(results))
		}
	})
}

// TestALifeInVPP: services change, others come and go, agents and VPP restart. An agent that reads
// and compares is always left with nothing to do, routes of others are never touched, and when the
// others have gone VPP does what is wanted, and nothing is left when nothing is.
func TestALifeInVPP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genModel(t)
		var have *State
		want := Want{}
		settle := func() {
			foreign := m.theirs()
			have = m.settle(t, have, want)
			if d := diff(foreign, m.theirs()); d != "" {
				t.Fatalf("routes of others have changed:\n%s", d)
			}
		}
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				want = genWant(t)
			case 2, 3:
				stir(t, m)
			case 4:
				have = nil // the agent restarts
			case 5:
				if rapid.IntRange(0, 3).Draw(t, "crash") == 0 {
					fresh := newModel()
					*m, have = *fresh, nil
				}
			default:
				settle()
			}
		}
		for place := range m.theirs() {
			m.unset(place.Prefix, place.Source)
		}
		settle()
		for _, p := range places {
			id, path := m.wins(p)
			route, is := want[p]
			if kind := kindOf([]fib_types.FibPath{{Type: path}}); is && (kind != route.Kind || id != have.Source) || !is && id != 0 {
				t.Fatalf("%s is %s by source %d, want %s", p, path, id, route)
			}
		}
		want = Want{}
		settle()
		if left := m.ours(); len(left) > 0 {
			t.Fatalf("left when nothing is wanted any more: %v", left)
		}
	})
}
