package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

const nat44 = address.Dataplane + "/nat44"

// TestRefusals: exempt actors, unknown actors and invalid faults are refused.
func TestRefusals(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		for name, tt := range map[string]struct {
			fault Fault
			is    error
			want  string
		}{
			"root":                   {Fault{Kind: Kill, Actor: "agent"}, ErrExempt, "kill agent: the root actor is exempt: its end is the end of the process"},
			"journal by path":        {Fault{Kind: Suspend, Actor: "agent/journal"}, ErrExempt, "suspend agent/journal: the journal is exempt: it keeps the audit record"},
			"journal by name":        {Fault{Kind: Drop, Actor: "journal"}, ErrExempt, "the journal is exempt"},
			"chaos":                  {Fault{Kind: Kill, Actor: "chaos"}, ErrExempt, "chaos itself is exempt"},
			"suspended supervisor":   {Fault{Kind: Suspend, Actor: "world"}, ErrExempt, "suspend agent/world: a supervisor is exempt from suspend"},
			"looping supervisor":     {Fault{Kind: CrashLoop, Actor: address.Services}, ErrExempt, "a supervisor is exempt from crashloop"},
			"unknown":                {Fault{Kind: Kill, Actor: "agent/unknown"}, ErrNoActor, "kill: agent/unknown: no such actor"},
			"no such service":        {Fault{Kind: Kill, Actor: "shop/z"}, ErrNoActor, "kill: shop/z: no such actor"},
			"part of a service name": {Fault{Kind: Kill, Actor: "shop~a"}, ErrNoActor, "no such actor"},
			"nonsense":               {Fault{Kind: Kill}, ErrInvalid, "actor: is required"},
		} {
			_, err := th.Inject(t.Context(), "a test", tt.fault)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
		}
		if s := th.Status(); len(s.Records) > 0 || s.Active > 0 || !s.Enabled {
			t.Errorf("status %+v", s)
		}
	})
}

// TestKill: a kill has a new incarnation, an outcome and an audit record in the journal. The actor
// is given by path, by name and by service.
func TestKill(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		for actor, path := range map[string]string{
			"nat44": nat44, address.Registry: address.Registry, "shop/a": address.Service("shop/a"), "agent/dataplane": address.Dataplane,
		} {
			before := th.state(t, path)
			r := th.must(t, Fault{Kind: Kill, Actor: actor})
			if r.Actor != path || r.Who != "a test" || r.State != StateRecovering || r.EndedBy != "done" || r.Struck != 1 || !r.Until.IsZero() {
				t.Errorf("%s: %+v", actor, r)
			}
			time.Sleep(3 * time.Second)
			if after := th.state(t, path); after.Incarnation != before.Incarnation+1 {
				t.Errorf("%s: incarnation %d, then %d", actor, before.Incarnation, after.Incarnation)
			}
			if r = th.record(t, r.ID); r.State != StateWell || !strings.HasPrefix(r.Outcome, "well again after ") {
				t.Errorf("%s: %+v", actor, r)
			}
		}
		entries := th.heard.journalled()
		if n := len(entries); n != 8 {
			t.Errorf("%d entries in the journal, want two a fault", n)
		}
		for _, e := range entries {
			if e.GetKind() != "drill" || !strings.HasPrefix(e.GetObject(), "chaos/") || e.GetError() != "" {
				t.Errorf("event %v", e)
			}
		}
	})
}

// TestKillsAreLimited: kills stay below the budget of a supervisor; kills of services have no
// limit.
func TestKillsAreLimited(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		for range mostFailures {
			th.must(t, Fault{Kind: Kill, Actor: nat44})
		}
		if _, err := th.Inject(t.Context(), "a test", Fault{Kind: Kill, Actor: nat44}); !errors.Is(err, ErrLimit) {
			t.Errorf("one more: %v", err)
		}
		for range 20 {
			th.must(t, Fault{Kind: Kill, Actor: "shop/b"})
		}
		time.Sleep(failureWindow)
		th.must(t, Fault{Kind: Kill, Actor: nat44})
		if root := th.state(t, address.Dataplane); root.Panics > 0 {
			t.Errorf("the supervisor gave up: %+v", root)
		}
	})
}

// TestSuspend: messages wait and are counted, and the actor handles them after the deadline.
func TestSuspend(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		r := th.must(t, Fault{Kind: Suspend, Actor: "nat44", For: Duration(5 * time.Second)})
		th.send(nat44, &messages.Begin{}, &messages.Verify{}, &messages.Verify{})
		if s := th.state(t, nat44); s.State != runtime.StateHeld || s.User != 3 || th.heard.of(nat44) != 0 {
			t.Errorf("%+v, heard %d", s, th.heard.of(nat44))
		}
		if got := th.record(t, r.ID); got.State != StateActive || got.Struck != 3 {
			t.Errorf("%+v", got)
		}
		if _, err := th.Inject(t.Context(), "a test", Fault{Kind: Suspend, Actor: nat44}); !errors.Is(err, ErrBusy) {
			t.Errorf("twice: %v", err)
		}
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if got := th.record(t, r.ID); got.EndedBy != "deadline" || got.Struck != 3 || th.heard.of(nat44) != 3 {
			t.Errorf("%+v, heard %d", got, th.heard.of(nat44))
		}
	})
}

// TestDropAndDelay: messages to one actor are lost or late, by type and rate; requests of the API
// pass.
func TestDropAndDelay(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		th.must(t, Fault{Kind: Drop, Actor: nat44, Message: "Begin"})
		delayed := th.must(t, Fault{Kind: Delay, Actor: nat44, Message: "Verify", By: Duration(3 * time.Second)})
		th.send(nat44, &messages.Begin{}, &messages.Render{Key: "a"}, &messages.Verify{})
		th.send(address.Registry, &messages.Begin{})
		if th.heard.of(nat44) != 1 || th.heard.of(address.Registry) != 1 {
			t.Errorf("heard %d, the registry %d", th.heard.of(nat44), th.heard.of(address.Registry))
		}
		if _, err := th.sys.Inspect(t.Context(), nat44); err != nil {
			t.Errorf("inspect: %v", err)
		}
		time.Sleep(3*time.Second + time.Millisecond)
		if th.heard.of(nat44) != 2 || th.record(t, delayed.ID).Struck != 1 {
			t.Errorf("late: heard %d, %+v", th.heard.of(nat44), th.record(t, delayed.ID))
		}
		th.Stop("a test")
		time.Sleep(4 * time.Second) // the actor fails, and begins again, after the last late message
		th.send(nat44, &messages.Begin{}, &messages.Verify{})
		if th.heard.of(nat44) != 4 {
			t.Errorf("after the stop: heard %d", th.heard.of(nat44))
		}
		some := th.must(t, Fault{Kind: Drop, Actor: nat44, Rate: 0.25})
		before := th.heard.of(nat44)
		for range 1000 {
			th.sys.Send(th.sys.PID(nat44), &messages.Verify{})
		}
		synctest.Wait()
		if lost := 1000 - (th.heard.of(nat44) - before); lost < 180 || lost > 320 || th.record(t, some.ID).Struck != uint64(lost) {
			t.Errorf("lost %d of 1000, %+v", lost, th.record(t, some.ID))
		}
	})
}

// TestPanic: a panic strikes in its phase, as often as it should, and is over then.
func TestPanic(t *testing.T) {
	path := address.Service("shop/a")
	for name, tt := range map[string]struct {
		fault  Fault
		send   int
		heard  int
		struck uint64
	}{
		"before":          {Fault{Kind: Panic}, 4, 3, 1},
		"after":           {Fault{Kind: Panic, Phase: PhaseAfter}, 4, 4, 1},
		"twice":           {Fault{Kind: Panic, Times: 2}, 4, 2, 2},
		"of another type": {Fault{Kind: Panic, Message: "Begin"}, 4, 4, 0},
		"of this type":    {Fault{Kind: Panic, Message: "Verify"}, 1, 0, 1},
		"in the start":    {Fault{Kind: Panic, Phase: PhaseStart}, 1, 1, 1},
		"in the stop":     {Fault{Kind: Panic, Phase: PhaseStop}, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, th *theatre) {
				tt.fault.Actor, tt.fault.For = "shop/a", Duration(10*time.Second)
				r := th.must(t, tt.fault)
				for range tt.send {
					th.send(path, &messages.Verify{})
					time.Sleep(100 * time.Millisecond) // back-off
				}
				time.Sleep(15 * time.Second)
				got := th.record(t, r.ID)
				want := "done"
				if tt.struck == 0 {
					want = "deadline"
				}
				if th.heard.of(path) != tt.heard || got.Struck != tt.struck || got.EndedBy != want || got.State != StateWell {
					t.Errorf("heard %d, %+v", th.heard.of(path), got)
				}
			})
		})
	}
}

// TestCrashLoop: the service gets into quarantine, and others are not affected. The end of the
// fault ends the quarantine.
func TestCrashLoop(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		path := address.Service("shop/a")
		r := th.must(t, Fault{Kind: CrashLoop, Actor: "shop/a", For: Duration(time.Minute)})
		time.Sleep(time.Second)
		if s := th.state(t, path); s.State != runtime.StateQuarantined || !strings.Contains(s.LastFailure, "injected by chaos: #1 crashloop start") {
			t.Errorf("%+v", s)
		}
		for _, other := range []string{address.Service("shop/b"), address.Services} {
			if s := th.state(t, other); s.Panics > 0 {
				t.Errorf("%+v", s)
			}
		}
		if n := th.Stop("a client"); n != 1 {
			t.Errorf("%d stopped", n)
		}
		synctest.Wait()
		if s := th.state(t, path); s.State != runtime.StateIdle {
			t.Errorf("after the stop: %+v", s)
		}
		time.Sleep(2 * time.Second)
		if got := th.record(t, r.ID); got.State != StateWell || got.EndedBy != "stopped by a client" || got.Struck < 2 {
			t.Errorf("%+v", got)
		}
	})
}

// TestKillsEndInNoQuarantine: a drill that kills the same service again and again is over soon
// after its stop, although the supervisor puts the service into quarantine.
func TestKillsEndInNoQuarantine(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		path := address.Service("shop/a")
		var last Record
		for range 3 {
			time.Sleep(300 * time.Millisecond) // the service runs again
			last = th.must(t, Fault{Kind: Kill, Actor: "shop/a"})
			synctest.Wait()
		}
		if s := th.state(t, path); s.State != runtime.StateQuarantined {
			t.Errorf("after three kills: %+v", s)
		}
		time.Sleep(3 * time.Second)
		if got := th.record(t, last.ID); got.State != StateWell || th.state(t, path).State != runtime.StateIdle {
			t.Errorf("%+v; %+v", got, th.state(t, path))
		}
	})
}

// TestCrashLoopOfAWorker: a long crash loop stays below the budget of the supervisor.
func TestCrashLoopOfAWorker(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		r := th.must(t, Fault{Kind: CrashLoop, Actor: nat44, For: Duration(time.Minute)})
		time.Sleep(time.Minute + 2*time.Second)
		got, s := th.record(t, r.ID), th.state(t, address.Dataplane)
		if s.Panics > 0 || got.EndedBy != "deadline" || got.State != StateWell || got.Struck < mostFailures-1 {
			t.Errorf("%+v; supervisor %+v", got, s)
		}
	})
}

// TestStop: a stop ends all faults at once, with all their effects.
func TestStop(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		th.must(t, Fault{Kind: Suspend, Actor: "nat44"})
		th.must(t, Fault{Kind: Drop, Actor: "registry"})
		th.must(t, Fault{Kind: Delay, Actor: "audit", By: Duration(time.Second)})
		th.must(t, Fault{Kind: Panic, Actor: "shop/a"})
		th.must(t, Fault{Kind: CrashLoop, Actor: "shop/b"})
		if s := th.Status(); s.Active != 5 {
			t.Errorf("%d active", s.Active)
		}
		if n := th.Stop("an operator"); n != 5 || th.Stop("an operator") != 0 {
			t.Errorf("%d stopped, then %d", n, th.Stop("an operator"))
		}
		time.Sleep(10 * time.Millisecond) // the registry, which lost messages, begins again
		for _, path := range []string{nat44, address.Registry, address.Dataplane + "/audit", address.Service("shop/a")} {
			before := th.heard.of(path)
			th.send(path, &messages.Verify{})
			if th.heard.of(path) != before+1 {
				t.Errorf("%s hears nothing", path)
			}
		}
		time.Sleep(4 * time.Second)
		for _, r := range th.Status().Records {
			if r.State != StateWell || r.EndedBy != "stopped by an operator" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestMostFaults: the number of active faults is limited.
func TestMostFaults(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		n, err := 0, error(nil)
		for _, kind := range []Kind{Suspend, Drop, Panic} {
			for _, actor := range []string{"nat44", "audit", "registry", "shop/a", "shop/b", "shop/c"} {
				if err == nil {
					if _, err = th.Inject(t.Context(), "a test", Fault{Kind: kind, Actor: actor}); err == nil {
						n++
					}
				}
			}
		}
		if n != MostFaults || !errors.Is(err, ErrLimit) {
			t.Errorf("%d faults, then %v", n, err)
		}
	})
}

// TestOutcomes: the outcome compares the world with its state before the fault.
func TestOutcomes(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after, healed func(th *theatre)
		state                 State
		want                  string
	}{
		"well": {state: StateWell, want: "VPP: 0 writes, 0 row reads, holds what it should"},
		"never ready": {
			after: func(th *theatre) { th.ready = false }, state: StateNotWell, want: "not ready: nat44: unwell",
		},
		"ready later": {
			after: func(th *theatre) { th.ready = false }, healed: func(th *theatre) { th.ready = true }, state: StateWell, want: "well again after 20",
		},
		"a service is lost": {
			after: func(th *theatre) { th.services[0].State = "pending" }, state: StateNotWell, want: "shop/a is pending",
		},
		"it was unwell before": {
			before: func(th *theatre) { th.services[0].State = "failed" }, state: StateWell, want: "well again",
		},
		"VPP is another": {
			after: func(th *theatre) { th.lacks = []string{"add row 1", "add row 2"} }, state: StateNotWell,
			want: "VPP differs from what it should hold by 2 operations, first: add row 1",
		},
		"it cost something": {
			after: func(th *theatre) { th.usage.Writes, th.usage.RowReads = 3, 1 }, state: StateWell, want: "VPP: 3 writes, 1 row reads",
		},
		"no answer": {after: func(th *theatre) { th.blind = errBlind }, state: StateNotWell, want: "services cannot be read: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, th *theatre) {
				step := func(fn func(*theatre)) {
					if fn != nil {
						th.change(func() { fn(th) })
					}
				}
				step(tt.before)
				r := th.must(t, Fault{Kind: Kill, Actor: "shop/a"})
				step(tt.after)
				time.Sleep(20 * time.Second)
				step(tt.healed)
				time.Sleep(40 * time.Second)
				if got := th.record(t, r.ID); got.State != tt.state || !strings.Contains(got.Outcome, tt.want) {
					t.Errorf("%s %q, want %s %q", got.State, got.Outcome, tt.state, tt.want)
				}
			})
		})
	}
}

// TestClose: active faults end, and later faults are refused.
func TestClose(t *testing.T) {
	play(t, func(t *testing.T, th *theatre) {
		r := th.must(t, Fault{Kind: Suspend, Actor: "nat44", For: Duration(time.Hour)})
		if err := th.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := th.record(t, r.ID); got.EndedBy != "stopped by the end of the agent" || got.State != StateUnknown || th.state(t, nat44).Held {
			t.Errorf("%+v", got)
		}
		if _, err := th.Inject(t.Context(), "a test", Fault{Kind: Kill, Actor: "nat44"}); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}
