package runtime

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// troupe makes a Dynamic supervisor at "sup" whose children report starts, stops and work; a
// *messages.ServiceSpec of generation 13 is poison.
func troupe(t *testing.T, j *journal, policy Policy, with func(*Options)) (*Sim, *System) {
	t.Helper()
	sim, sys := simulated(t, 1, with)
	root(t, sys, "sup", Dynamic("services", func(key string) Spec { return memberSpec(j, key) }, policy))
	settle(t, sim)
	return sim, sys
}

func memberSpec(j *journal, key string) Spec {
	return probeSpec(probe{
		start: func(c *Context) { j.add("start %s %d", key, c.Incarnation()) },
		receive: func(c *Context, msg any) {
			switch m := msg.(type) {
			case *work:
				j.add("%s %d gets %d", key, c.Incarnation(), m.n)
			case *messages.ServiceSpec:
				j.add("%s spec %d", key, m.GetGeneration())
				if m.GetGeneration() == 13 {
					panic("poison")
				}
			case *boom:
				panic("boom")
			}
		},
		stop: func(c *Context) { j.add("stop %s %d", key, c.Incarnation()) },
	})
}

// tell sends to the supervisor and lets it work.
func tell(t *testing.T, sim *Sim, sys *System, msg any) {
	t.Helper()
	sys.Send(sys.PID("sup"), msg)
	settle(t, sim)
}

func expectActors(t *testing.T, sys *System, want ...string) {
	t.Helper()
	if got := slices.Collect(actorNames(sys)); !slices.Equal(got, want) {
		t.Errorf("actors %v, want %v", got, want)
	}
}

// expectSet compares without order.
func expectSet(t *testing.T, j *journal, want ...string) {
	t.Helper()
	got := j.take()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("events\n got %s\nwant %s", strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

// TestDynamicMembership: Ensure, complete Ensure and Release, each also twice.
func TestDynamicMembership(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("default/web", "default/db", ""))
	expectSet(t, &j, "start default/web 1", "start default/db 1")
	expectActors(t, sys, "sup", "sup/default~db", "sup/default~web")
	tell(t, sim, sys, ensure("default/web", "default/web"))
	expect(t, &j)
	tell(t, sim, sys, ensureAll("default/web", "kube/dns"))
	expectSet(t, &j, "start kube/dns 1", "stop default/db 1")
	expectActors(t, sys, "sup", "sup/default~web", "sup/kube~dns")
	tell(t, sim, sys, &messages.Release{Key: "default/web"})
	tell(t, sim, sys, &messages.Release{Key: "default/web"})
	tell(t, sim, sys, &messages.Release{Key: "never/there"})
	expect(t, &j, "stop default/web 1")
	tell(t, sim, sys, ensureAll())
	expect(t, &j, "stop kube/dns 1")
	expectActors(t, sys, "sup")
	// for a key that does not exist
	tell(t, sim, sys, &messages.Nudge{Key: "default/web", Generation: 3})
	expect(t, &j, "start default/web 1")
	tell(t, sim, sys, &messages.Nudge{})
	expectActors(t, sys, "sup", "sup/default~web")
}

// TestDynamicOneForOne: a failing child is restarted with its mailbox; the others feel nothing.
func TestDynamicOneForOne(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("a", "b"))
	sys.Send(sys.PID("sup/a"), &boom{})
	sys.Send(sys.PID("sup/a"), &work{1})
	settle(t, sim)
	expectSet(t, &j, "start a 1", "start b 1", "stop a 1", "start a 2", "a 2 gets 1")
	if s := state(t, sys, "sup/b"); s.Restarts != 0 || s.Panics != 0 {
		t.Errorf("b: %+v", s)
	}
}

// TestDynamicQuarantine: a poisonous generation puts the child aside with its mailbox. A nudge of
// the same generation changes nothing, one of a higher generation lets it try again.
func TestDynamicQuarantine(t *testing.T) {
	var j journal
	var decisions []string
	sim, sys := troupe(t, &j, Policy{}, func(o *Options) {
		o.OnFault = func(f *messages.Fault) { decisions = append(decisions, f.GetDecision()) }
	})
	tell(t, sim, sys, ensure("a", "b"))
	j.take()
	for range 3 {
		sys.Send(sys.PID("sup/a"), &messages.ServiceSpec{Generation: 13})
		settle(t, sim)
	}
	expect(t, &j, "a spec 13", "stop a 1", "start a 2", "a spec 13", "stop a 2", "start a 3", "a spec 13")
	if want := []string{"restart", "restart", "quarantine"}; !slices.Equal(decisions, want) {
		t.Errorf("decisions %v", decisions)
	}
	if s := state(t, sys, "sup/a"); s.State != StateQuarantined || !s.Suspended || s.Until.Sub(sim.Now()) != 29*time.Second {
		t.Errorf("a in quarantine until %v: %+v", s.Until.Sub(sim.Now()), s)
	}
	if text, err := sys.Inspect(t.Context(), "sup"); err != nil || !strings.Contains(text, `"quarantined":1`) ||
		!strings.Contains(text, `{"key":"a","quarantined":true,"waiting":true,"attempts":3,"generation":13}`) {
		t.Errorf("inspect: %s, %v", text, err)
	}

	sys.Send(sys.PID("sup/a"), &messages.ServiceSpec{Generation: 13})
	tell(t, sim, sys, &messages.Nudge{Key: "a", Generation: 13})
	expect(t, &j)
	sys.Send(sys.PID("sup/a"), &messages.ServiceSpec{Generation: 14})
	tell(t, sim, sys, &messages.Nudge{Key: "a", Generation: 14})
	expect(t, &j, "stop a 3", "start a 4", "a spec 14")
	if s := state(t, sys, "sup/a"); s.State != StateIdle || !s.Until.IsZero() || s.Coalesced != 1 {
		t.Errorf("a after quarantine: %+v", s)
	}
	run(t, sim, time.Hour) // the timer of the quarantine means nothing any more
	expect(t, &j)
}

// TestResetBackoff: a child in quarantine or back-off is restarted at once, without any effect on
// the others.
func TestResetBackoff(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{QuarantineAfter: 2, QuarantineFor: time.Hour}, nil)
	tell(t, sim, sys, ensure("a", "b"))
	for range 2 {
		sys.Send(sys.PID("sup/a"), &boom{})
		settle(t, sim)
	}
	if s := state(t, sys, "sup/a"); s.State != StateQuarantined {
		t.Fatalf("a: %+v", s)
	}
	j.take()
	for _, path := range []string{"sup/a", "sup/b", "sup/a", "sup"} { // the others do not need it
		if err := sys.ResetBackoff(path); err != nil {
			t.Error(err)
		}
		settle(t, sim)
	}
	expect(t, &j, "stop a 2", "start a 3")
	run(t, sim, 2*time.Hour)
	expect(t, &j)
	if err := sys.ResetBackoff("sup/none"); !errors.Is(err, ErrNoActor) {
		t.Errorf("no actor: %v", err)
	}
}

// TestDynamicQuarantineEnds: after QuarantineFor the child tries again, and is put aside again when
// nothing has changed.
func TestDynamicQuarantineEnds(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{QuarantineAfter: 2, QuarantineFor: time.Minute, BackoffMax: time.Second}, nil)
	tell(t, sim, sys, ensure("a"))
	j.take()
	fail := func() {
		sys.Send(sys.PID("sup/a"), &boom{})
		settle(t, sim)
	}
	fail()
	fail()
	if s := state(t, sys, "sup/a"); s.State != StateQuarantined {
		t.Fatalf("a: %+v", s)
	}
	j.take()
	run(t, sim, 58*time.Second)
	expect(t, &j)
	run(t, sim, 2*time.Second)
	expect(t, &j, "stop a 2", "start a 3")
	run(t, sim, 10*time.Second)
	fail()
	if s := state(t, sys, "sup/a"); s.State != StateIdle {
		t.Errorf("the first failure after a quarantine is forgiven: %+v", s)
	}
	fail()
	if s := state(t, sys, "sup/a"); s.State != StateQuarantined {
		t.Errorf("a: %+v", s)
	}
	tell(t, sim, sys, &messages.Release{Key: "a"})
	expectActors(t, sys, "sup")
	run(t, sim, time.Hour)
	expectActors(t, sys, "sup")
}

// TestDynamicQuarantineTimersAreCalledOff: the timer of a quarantine that was lifted does not
// shorten the next quarantine, nor the one of a later child of the name.
func TestDynamicQuarantineTimersAreCalledOff(t *testing.T) {
	for name, lift := range map[string]any{"nudge": &messages.Nudge{Key: "a", Generation: 1}, "release": &messages.Release{Key: "a"}} {
		t.Run(name, func(t *testing.T) {
			var j journal
			sim, sys := troupe(t, &j, Policy{QuarantineAfter: 1, QuarantineFor: time.Minute}, nil)
			for range 2 {
				tell(t, sim, sys, ensure("a"))
				sys.Send(sys.PID("sup/a"), &boom{})
				run(t, sim, 30*time.Second)
				if text, err := sys.Inspect(t.Context(), "sup"); err != nil || !strings.Contains(text, `"quarantined":1,`) {
					t.Fatalf("inspect: %s, %v", text, err)
				}
				if s := state(t, sys, "sup/a"); s.State != StateQuarantined {
					t.Fatalf("a: %+v", s)
				}
				tell(t, sim, sys, lift)
				if text, err := sys.Inspect(t.Context(), "sup"); err != nil || !strings.Contains(text, `"quarantined":0,`) {
					t.Errorf("inspect after the quarantine: %s, %v", text, err)
				}
				lift = &messages.Release{Key: "a"}
			}
			tell(t, sim, sys, ensure("a"))
			sys.Send(sys.PID("sup/a"), &boom{})
			run(t, sim, 58*time.Second) // all earlier timers would have come by now
			if s := state(t, sys, "sup/a"); s.State != StateQuarantined {
				t.Errorf("a: %+v", s)
			}
		})
	}
}

// TestDynamicSlowFailuresAreNoQuarantine: the quarantine counts in a window.
func TestDynamicSlowFailuresAreNoQuarantine(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("a"))
	for range 20 {
		sys.Send(sys.PID("sup/a"), &boom{})
		run(t, sim, 2*time.Minute) // older than HealthyAfter, so that the back-off stays small
		if s := state(t, sys, "sup/a"); s.State != StateIdle {
			t.Fatalf("a: %+v", s)
		}
	}
}

// TestDynamicRespawn: a name that is released and ensured again gets a new actor, after the old one
// has ended.
func TestDynamicRespawn(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("a"))
	old := sys.PID("sup/a")
	sys.Send(sys.PID("sup"), &messages.Release{Key: "a"})
	sys.Send(sys.PID("sup"), ensure("a"))
	settle(t, sim)
	expect(t, &j, "start a 1", "stop a 1", "start a 1")
	if sys.PID("sup/a") == old {
		t.Error("the same actor")
	}
	sys.Send(sys.PID("sup"), &messages.Release{Key: "a"})
	sys.Send(sys.PID("sup"), ensure("a"))
	sys.Send(sys.PID("sup"), &messages.Release{Key: "a"})
	settle(t, sim)
	expectActors(t, sys, "sup")
}

// TestDynamicChildStops: a child that ends although it is wanted is a failure of that child.
func TestDynamicChildStops(t *testing.T) {
	var j journal
	var faults []*messages.Fault
	sim, sys := troupe(t, &j, Policy{Jitter: -1}, func(o *Options) {
		o.OnFault = func(f *messages.Fault) { faults = append(faults, f) }
	})
	tell(t, sim, sys, ensure("a"))
	mailbox(t, sys, "sup/a").stop()
	settle(t, sim)
	expect(t, &j, "start a 1", "stop a 1", "start a 1")
	if len(faults) != 1 || faults[0].GetReason() != ErrStopped.Error() || faults[0].GetDecision() != "restart" {
		t.Errorf("faults: %v", faults)
	}
	// Stopped while it waits for its restart: the timer makes a new one.
	sys.Send(sys.PID("sup/a"), &boom{})
	run(t, sim, 0)
	if s := state(t, sys, "sup/a"); s.State != StateBackoff {
		t.Fatalf("a: %+v", s)
	}
	mailbox(t, sys, "sup/a").stop()
	settle(t, sim)
	expectActors(t, sys, "sup", "sup/a")
	if len(faults) != 2 {
		t.Errorf("faults: %v", faults)
	}
}

// TestDynamicBrokenSpec: a child that can not even be made is tried again and again, alone.
func TestDynamicBrokenSpec(t *testing.T) {
	var j journal
	broken := true
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "sup", Dynamic("services", func(key string) Spec {
		if broken && key == "bad" {
			panic(errors.New("no such kind"))
		}
		return memberSpec(&j, key)
	}, Policy{QuarantineAfter: -1, BackoffMax: time.Second}))
	tell(t, sim, sys, ensure("bad", "good"))
	expect(t, &j, "start good 1")
	expectActors(t, sys, "sup", "sup/good")
	broken = false
	run(t, sim, time.Minute)
	expect(t, &j, "start bad 1")
	if s := state(t, sys, "sup"); s.Panics != 0 {
		t.Errorf("sup: %+v", s)
	}
}

// TestDynamicBudget: without one a thousand failures at once restart no other actor; with one the
// supervisor fails.
func TestDynamicBudget(t *testing.T) {
	for _, c := range []struct {
		budget   int
		restarts uint64
	}{{0, 0}, {10, 1}} {
		var j journal
		sim, sys := troupe(t, &j, Policy{Budget: c.budget}, nil)
		var keys []string
		for i := range 1000 {
			keys = append(keys, string(rune('a'+i%26))+strings.Repeat("x", i/26))
		}
		tell(t, sim, sys, ensureAll(keys...))
		for _, key := range keys {
			sys.Send(sys.PID("sup/"+key), &boom{})
		}
		settle(t, sim)
		if s := state(t, sys, "sup"); s.Restarts != c.restarts {
			t.Errorf("budget %d: %+v", c.budget, s)
		}
		tell(t, sim, sys, ensureAll(keys...))
		if n := len(sys.Snapshot()); n != 1001 {
			t.Errorf("budget %d: %d actors", c.budget, n)
		}
	}
}
