package catalog

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// numbered returns the names s0 to s<n-1>.
func numbered(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("s%03d", i))
	}
	return out
}

// complete is a complete snapshot of services with these names.
func complete(names ...string) Snapshot {
	out := Snapshot{Complete: true, Repeated: true}
	for _, name := range names {
		out.Services = append(out.Services, Service{Name: name, Instances: []Instance{{Address: "192.0.2.1"}}})
	}
	return out
}

// incomplete is the same without completeness.
func incomplete(names ...string) Snapshot {
	out := complete(names...)
	out.Complete = false
	return out
}

// wanted checks the names that a gate wants, and returns its services.
func wanted(t *testing.T, g *Gate, owned, want []string) []Service {
	t.Helper()
	services := g.Wanted(owned)
	var got []string
	for _, s := range services {
		got = append(got, s.Name)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("wanted %v, want %v; %+v", got, want, g.Status())
	}
	return services
}

// TestA5NothingIsDeletedBeforeTheFirstCompleteSnapshot: after a restart all existing services stay,
// as unknown, while the source is away or gives partial answers.
func TestA5NothingIsDeletedBeforeTheFirstCompleteSnapshot(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(10)
	for _, s := range wanted(t, g, owned, owned) {
		if !s.Unknown {
			t.Errorf("%s is known", s.Name)
		}
	}
	g.Offer(incomplete("s000", "x"), owned)
	services := wanted(t, g, owned, append(slices.Clone(owned), "x"))
	if services[0].Unknown || !services[1].Unknown || g.Status().Complete {
		t.Errorf("wanted %v, status %+v", services, g.Status())
	}
}

// TestA6IncompleteDeletesNothing: an incomplete snapshot deletes nothing, however often it is
// repeated, and the last good definition stays.
func TestA6IncompleteDeletesNothing(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(10)
	g.Offer(complete(owned...), owned)
	for range 5 {
		g.Offer(incomplete(), owned)
	}
	for _, s := range wanted(t, g, owned, owned) {
		if s.Unknown || len(s.Instances) != 1 {
			t.Errorf("%s lost its definition", s.Name)
		}
	}
}

// TestA7EmptyAnswer: an empty answer is held back until two further complete snapshots are empty
// too. A partial snapshot in between does not count.
func TestA7EmptyAnswer(t *testing.T) {
	g, owned := NewGate(100, 100_000), numbered(20)
	g.Offer(complete(), owned) // the first of this process
	wanted(t, g, owned, owned)
	g.Offer(complete(), owned)
	g.Offer(incomplete(), owned)
	for range 3 { // another change at the source is no confirmation
		g.Offer(Snapshot{Complete: true}, owned)
	}
	wanted(t, g, owned, owned)
	if s := g.Status(); len(s.Held) != 20 || s.Missing != 1 {
		t.Errorf("status %+v", s)
	}
	g.Offer(complete(), owned)
	wanted(t, g, owned, nil)
	// They are deleted one after the other.
	g.Offer(complete(), owned[5:])
	wanted(t, g, owned[5:], nil)
	g.Offer(complete(), nil)
	if s := g.Status(); len(s.Held) != 0 || s.Missing != 0 {
		t.Errorf("status %+v", s)
	}
	g.Offer(complete("s001"), nil)
	wanted(t, g, nil, []string{"s001"})
}

// TestA7Confirm: the confirmation of an operator releases the services held back now, and no
// service that vanishes later.
func TestA7Confirm(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(20)
	g.Offer(complete(owned[10:]...), owned)
	wanted(t, g, owned, owned)
	if names := g.Confirm(); !slices.Equal(names, owned[:10]) {
		t.Errorf("confirmed %v", names)
	}
	wanted(t, g, owned, owned[10:])
	g.Offer(complete(owned[15:]...), owned[10:])
	wanted(t, g, owned[10:], owned[10:])
	if names := g.Confirm(); len(names) != 5 {
		t.Errorf("confirmed %v", names)
	}
	if names := g.Confirm(); len(names) != 0 {
		t.Errorf("confirmed %v again", names)
	}
}

// TestLimit: up to the percentage services are released at once; above it no service is.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		percent, owned, left int
		held                 bool
	}{
		{30, 10, 7, false},
		{30, 10, 6, true},
		{30, 3, 2, true},
		{30, 4, 3, false},
		{30, 1, 0, true},
		{0, 10, 9, true},
		{0, 10, 10, false},
		{100, 10, 1, false},
		{100, 10, 0, true},
	} {
		g, owned := NewGate(c.percent, 100_000), numbered(c.owned)
		g.Offer(complete(owned[:c.left]...), owned)
		if held := len(g.Status().Held) > 0; held != c.held {
			t.Errorf("%d %% of %d, %d left: held %v, want %v", c.percent, c.owned, c.left, held, c.held)
		}
	}
}

// TestSlowLoss: services that vanish one by one count together; a pause without a loss starts anew.
func TestSlowLoss(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(100)
	for left := 99; left >= 60; left-- {
		g.Offer(complete(owned[:left]...), owned)
		owned = owned[:len(g.Wanted(owned))]
	}
	if len(owned) != 70 {
		t.Errorf("%d of 100 are left, want 70", len(owned))
	}
	g.Offer(complete(owned...), owned)
	g.Offer(complete(owned[:60]...), owned)
	wanted(t, g, owned, owned[:60])
}

// TestHeldServiceComesBack: a service that is held back and comes back was never deleted, and
// another loss starts a new count.
func TestHeldServiceComesBack(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(10)
	g.Offer(complete(owned[5:]...), owned)
	g.Offer(complete(owned[5:]...), owned)
	g.Offer(complete(owned...), owned)
	if s := g.Status(); len(s.Held) > 0 {
		t.Errorf("status %+v", s)
	}
	g.Offer(complete(owned[5:]...), owned)
	g.Offer(complete(owned[:5]...), owned) // others
	g.Offer(complete(owned[:5]...), owned)
	wanted(t, g, owned, owned)
	g.Offer(complete(owned[:5]...), owned)
	wanted(t, g, owned, owned[:5])
}

// TestACatalogThatFillsAgain: growing snapshots confirm nothing, because a Consul that has lost its
// data gets the services back one after the other.
func TestACatalogThatFillsAgain(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(10)
	for n := range 8 {
		s := complete(owned[:n]...)
		s.Repeated = false
		g.Offer(s, owned)
		g.Offer(complete(owned[:n]...), owned)
	}
	wanted(t, g, owned, owned)
}

// TestA8UnknownServiceKeepsItsDefinition: a service whose query failed keeps its last known
// definition.
func TestA8UnknownServiceKeepsItsDefinition(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(2)
	g.Offer(complete(owned...), owned)
	next := complete("s001")
	next.Services = append(next.Services, Service{Name: "s000", Unknown: true})
	g.Offer(next, owned)
	if s := wanted(t, g, owned, owned)[0]; s.Unknown || len(s.Instances) != 1 {
		t.Errorf("s000 is %+v", s)
	}
}

// TestA4EmptyServiceStays: a service without instances has not vanished, and its instances leave
// one by one.
func TestA4EmptyServiceStays(t *testing.T) {
	g, owned := NewGate(30, 100_000), numbered(1)
	g.Offer(complete(owned...), owned)
	g.Offer(Snapshot{Complete: true, Services: []Service{{Name: "s000"}}}, owned)
	if s := wanted(t, g, owned, owned)[0]; s.Unknown || len(s.Instances) != 0 {
		t.Errorf("s000 is %+v", s)
	}
}

// TestA28GateProperty: for any snapshots, a service is deleted only if the last complete snapshot
// did not have it. Above the limit it is deleted only if the last three did not have it, or after a
// confirmation. Three equal complete snapshots decide which services are wanted.
func TestA28GateProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const percent = 30
		g := NewGate(percent, 100_000)
		owned := numbered(rapid.IntRange(0, 12).Draw(t, "owned"))
		var completes []map[string]bool
		going := map[string]bool{} // not wanted since an earlier step
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			names := rapid.SliceOfDistinct(rapid.SampledFrom(numbered(12)), rapid.ID[string]).Draw(t, "names")
			repeat := 1
			if rapid.Bool().Draw(t, "stable") {
				repeat = 4
			}
			for range repeat {
				confirmed := false
				s := complete(names...)
				s.Complete = rapid.IntRange(0, 3).Draw(t, "complete") > 0
				g.Offer(s, owned)
				if s.Complete {
					there := map[string]bool{}
					for _, name := range names {
						there[name] = true
					}
					completes = append(completes, there)
				}
				if rapid.IntRange(0, 9).Draw(t, "confirm") == 0 {
					confirmed = len(g.Confirm()) > 0
				}
				next := map[string]bool{}
				for _, w := range g.Wanted(owned) {
					next[w.Name] = true
				}
				live, gone, agreed := 0, 0, len(completes) >= 3
				for _, name := range owned {
					if going[name] && !next[name] {
						continue
					}
					live++
					if next[name] {
						continue
					}
					gone++
					if len(completes) == 0 || completes[len(completes)-1][name] {
						t.Fatalf("%s goes, but the last complete snapshot has it", name)
					}
					for _, c := range completes[max(0, len(completes)-3):] {
						agreed = agreed && !c[name]
					}
				}
				if gone*100 > percent*live && !agreed && !confirmed {
					t.Fatalf("%d of %d go at once", gone, live)
				}
				for _, name := range names {
					if !next[name] {
						t.Fatalf("%s is in the snapshot and not wanted", name)
					}
				}
				// Some of the writes are carried out.
				var after []string
				for _, name := range numbered(12) {
					was := slices.Contains(owned, name)
					if done := rapid.IntRange(0, 4).Draw(t, "done") > 0; done && next[name] || !done && was {
						after = append(after, name)
					}
				}
				clear(going)
				for _, name := range after {
					going[name] = !next[name]
				}
				owned = after
			}
		}
		final := complete(numbered(3)...)
		for range 4 {
			g.Offer(final, owned)
		}
		if got := len(g.Wanted(owned)); got != 3 {
			t.Fatalf("%d wanted after four equal snapshots, want 3", got)
		}
	})
}

// TestOtherNamesEachTime: answers with other names each time add no service beyond the limit, held
// back or not, complete or not; what waits comes as soon as there is a place.
func TestOtherNamesEachTime(t *testing.T) {
	const most = 50
	for name, offer := range map[string]func(...string) Snapshot{"complete": complete, "incomplete": incomplete} {
		t.Run(name, func(t *testing.T) {
			g := NewGate(30, most)
			var owned []string
			for round := range 20 {
				var names []string
				for i := range 30 {
					names = append(names, fmt.Sprintf("r%02d-%02d", round, i))
				}
				snapshot := offer(names...)
				snapshot.Repeated = false
				g.Offer(snapshot, owned)
				services := g.Wanted(owned)
				owned = nil
				for _, s := range services {
					owned = append(owned, s.Name)
				}
			}
			if s := g.Status(); len(owned) != most || s.Waiting != 30 {
				t.Errorf("%d services, status %+v", len(owned), s)
			}
			g.Offer(complete("new"), owned)
			for range confirmations {
				g.Offer(complete("new"), owned)
			}
			wanted(t, g, owned, []string{"new"})
			if s := g.Status(); s.Waiting != 0 {
				t.Errorf("status %+v", s)
			}
		})
	}
}
