package runtime

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// The tests of this file show, one by one, that we do not step into the known defects of
// protoactor-go. Their numbers come from the list of pitfalls that the runtime was built from.

// TestPitfallP01RespawnWhileDown: a supervisor that goes down does not start children, for any
// message that it receives while it waits for the old ones. protoactor would wait for ever for "no
// children".
func TestPitfallP01RespawnWhileDown(t *testing.T) {
	campaign(t, 20, func(t *testing.T, seed uint64) {
		var j journal
		sim, sys := simulated(t, seed, nil)
		root(t, sys, "sup", Dynamic("services", func(key string) Spec { return memberSpec(&j, key) }, Policy{BackoffMax: time.Millisecond}))
		settle(t, sim)
		tell(t, sim, sys, ensure("a", "b", "c"))
		mailbox(t, sys, "sup").restart() // waits for three children
		sys.Send(sys.PID("sup"), ensure("d"))
		_ = sys.Kill("sup/a")
		mailbox(t, sys, "sup/b").stop()
		settle(t, sim)
		expectActors(t, sys, "sup", "sup/d") // d was kept for the next incarnation
	})
	sim, sys := simulated(t, 1, nil)
	var late *Context
	root(t, sys, "a", probeSpec(probe{start: func(c *Context) { late = c }}))
	settle(t, sim)
	old := late
	mailbox(t, sys, "a").restart()
	settle(t, sim)
	if _, err := sys.spawnChild(old, "child", spawnRequest{spec: probeSpec(probe{})}); !errors.Is(err, ErrDown) {
		t.Errorf("a dead incarnation has a child: %v", err)
	}
}

// TestPitfallP02PanicInStop: it is contained; the actor stops, and is not restarted.
func TestPitfallP02PanicInStop(t *testing.T) {
	sim, sys := simulated(t, 1, func(o *Options) { o.OnFatal = func(string) {} })
	root(t, sys, "a", probeSpec(probe{stop: func(*Context) { panic("in Stop") }}))
	settle(t, sim)
	box := mailbox(t, sys, "a")
	box.stop()
	settle(t, sim)
	expectActors(t, sys)
	if f := box.Failures(); len(f) != 1 || f[0].Reason != "in Stop" || f[0].Decision != decisionContained || f[0].Message != "Stop" {
		t.Errorf("failures: %+v", f)
	}
	// The same in a restart, where protoactor would fail the actor a second time.
	root(t, sys, "b", probeSpec(probe{stop: func(*Context) { panic("in Stop") }}))
	settle(t, sim)
	_ = sys.Kill("b")
	settle(t, sim)
	if s := state(t, sys, "b"); s.Incarnation != 2 || s.State != StateIdle || s.Panics != 2 {
		t.Errorf("b: %+v", s)
	}
}

// TestPitfallP03ParentOfPanickingStop: the parent learns of the end of a child whose Stop panics,
// and can stop itself.
func TestPitfallP03ParentOfPanickingStop(t *testing.T) {
	sim, sys := simulated(t, 1, nil)
	child := probeSpec(probe{stop: func(*Context) { panic("in Stop") }})
	root(t, sys, "sup", Ordered("sup", []Child{{Name: "a", Spec: child}, {Name: "b", Spec: child}}, Policy{}))
	settle(t, sim)
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	expectActors(t, sys)
}

// TestPitfallP04RestartAfterStop: a restart that comes after a stop, also from a back-off timer,
// does not resurrect the actor.
func TestPitfallP04RestartAfterStop(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{BackoffMin: time.Minute, BackoffMax: time.Minute}, nil)
	tell(t, sim, sys, ensure("a"))
	box := mailbox(t, sys, "sup/a")
	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim) // in back-off
	tell(t, sim, sys, &messages.Release{Key: "a"})
	run(t, sim, time.Hour)
	expect(t, &j, "start a 1", "stop a 1")
	expectActors(t, sys, "sup")
	for _, msg := range []any{&actor.Restart{}, &restartRequest{incarnation: 7}} {
		// from any source
		box.PostSystemMessage(msg)
	}
	settle(t, sim)
	expect(t, &j)
	// Queued behind the stop.
	tell(t, sim, sys, ensure("b"))
	b := mailbox(t, sys, "sup/b")
	sys.Send(sys.PID("sup/b"), &work{1})
	b.stop()
	b.PostSystemMessage(&actor.Restart{})
	b.restart()
	tell(t, sim, sys, &messages.Release{Key: "b"})
	run(t, sim, time.Hour)
	expect(t, &j, "start b 1", "stop b 1")
	// Behind a stop that waits for children, which protoactor would turn into a restart.
	tell(t, sim, sys, ensure("c"))
	sys.guardian.once.Do(func() {}) // the end of a root is on purpose
	sup := mailbox(t, sys, "sup")
	sup.stop()
	sup.restart()
	sup.PostSystemMessage(&actor.Restart{})
	settle(t, sim)
	expectActors(t, sys)
}

// TestPitfallP04StaleFailure: a failure that arrives after the child was restarted for another
// reason does not restart it again.
func TestPitfallP04StaleFailure(t *testing.T) {
	for name, spec := range map[string]Spec{
		"ordered": Ordered("sup", []Child{{Name: "a", Spec: probeSpec(probe{})}}, Policy{}),
		"dynamic": Dynamic("sup", func(string) Spec { return probeSpec(probe{}) }, Policy{}),
	} {
		t.Run(name, func(t *testing.T) {
			var faults []string
			sim, sys := simulated(t, 1, func(o *Options) {
				o.OnFault = func(f *messages.Fault) { faults = append(faults, f.GetDecision()) }
			})
			root(t, sys, "sup", spec)
			tell(t, sim, sys, ensure("a"))
			child := mailbox(t, sys, "sup/a")
			child.restart()
			settle(t, sim)
			mailbox(t, sys, "sup").PostSystemMessage(&actor.Failure{Who: child.pid, Reason: &Failure{Incarnation: 1}})
			settle(t, sim)
			if s := child.State(); s.Incarnation != 2 || len(faults) != 1 || faults[0] != decisionRestart {
				t.Errorf("a: %+v, faults %v", s, faults)
			}
			mailbox(t, sys, "sup").PostSystemMessage(&actor.Failure{Who: actor.NewPID("nonhost", "sup/a"), Reason: &Failure{Incarnation: 2}})
			settle(t, sim)
			if s := child.State(); s.Incarnation != 2 {
				t.Errorf("a failure of another actor of that name: %+v", s)
			}
		})
	}
}

// TestPitfallP05RespawnBeforeTerminated: a name is used again only after the end of its last actor
// was handled. See also TestDynamicOnDispatcher, which looks for the orphan on the real dispatcher.
func TestPitfallP05RespawnBeforeTerminated(t *testing.T) {
	campaign(t, 50, func(t *testing.T, seed uint64) {
		var j journal
		sim, sys := simulated(t, seed, nil)
		root(t, sys, "sup", Dynamic("services", func(key string) Spec { return memberSpec(&j, key) }, Policy{}))
		settle(t, sim)
		for range 10 {
			sys.Send(sys.PID("sup"), ensure("a"))
			sys.Send(sys.PID("sup"), &messages.Release{Key: "a"})
		}
		sys.Send(sys.PID("sup"), ensure("a"))
		settle(t, sim)
		started := 0
		for _, e := range j.take() {
			switch {
			case strings.HasPrefix(e, "start"):
				started++
			case strings.HasPrefix(e, "stop"):
				started--
			}
			if started < 0 || started > 1 {
				t.Fatalf("%d actors of one name", started)
			}
		}
		if err := sys.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		expectActors(t, sys) // no actor without a parent
	})
}

// TestPitfallP06MessagesWhileGoingDown: a restart that waits for children loses no message and
// gives none to the old incarnation; a stop gives it none either.
func TestPitfallP06MessagesWhileGoingDown(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "sup", Dynamic("services", func(key string) Spec { return memberSpec(&j, key) }, Policy{}))
	settle(t, sim)
	tell(t, sim, sys, ensure("old"))
	box := mailbox(t, sys, "sup")
	child := mailbox(t, sys, "sup/old")
	child.mu.Lock() // the child takes its time
	child.flags.scheduled = true
	child.mu.Unlock()
	box.restart()
	sys.Send(sys.PID("sup"), ensure("new"))
	settle(t, sim)
	if s := box.State(); s.Incarnation != 1 || s.User != 1 {
		t.Errorf("sup waits for its child: %+v", s)
	}
	child.mu.Lock()
	child.flags.scheduled = false
	child.mu.Unlock()
	child.Release()
	settle(t, sim)
	expectActors(t, sys, "sup", "sup/new")
	if s := box.State(); s.Incarnation != 2 || s.Discarded != 0 {
		t.Errorf("sup: %+v", s)
	}
}

// TestPitfallP06ShellDropsWhenDown: the second line of defence.
func TestPitfallP06ShellDropsWhenDown(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "a", probeSpec(recorder(&j)))
	settle(t, sim)
	box := mailbox(t, sys, "a")
	box.invoker.(interface{ Actor() actor.Actor }).Actor().(*adapter).down = true
	sys.Send(sys.PID("a"), &work{1})
	settle(t, sim)
	expect(t, &j)
	if s := box.State(); s.Discarded != 1 {
		t.Errorf("state: %+v", s)
	}
}

// TestPitfallP07DiscardedOnStop: what a stopped actor did not handle is counted and reported.
func TestPitfallP07DiscardedOnStop(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("a"))
	box := mailbox(t, sys, "sup/a")
	box.Hold()
	a := sys.PID("sup/a")
	for i := range 3 {
		sys.Send(a, &work{i})
	}
	tell(t, sim, sys, &messages.Release{Key: "a"})
	box.PostUserMessage(&keyed{"late", 1}) // by a sender that kept the mailbox
	sys.Send(a, &boom{})
	n, latest := sys.DeadLetters()
	if n != 5 || box.State().Discarded != 3 {
		t.Fatalf("%d dead letters %v", n, latest)
	}
	for i, want := range []string{"work discarded on stop", "work discarded on stop", "work discarded on stop", "keyed actor has stopped", "boom no such actor"} {
		if got := latest[i].Type + " " + latest[i].Reason; got != want || latest[i].To != "sup/a" {
			t.Errorf("dead letter %d: %+v, want %s", i, latest[i], want)
		}
	}
}

// TestPitfallP08ResumeAboveEscalate: after an escalation the failed child does not stay suspended
// for ever: its supervisor is restarted, never resumed.
func TestPitfallP08ResumeAboveEscalate(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	inner := Ordered("inner", scripted(&j)(Child{Name: "a"}), Policy{Budget: 1})
	root(t, sys, "sup", Ordered("outer", []Child{{Name: "inner", Spec: inner}}, Policy{}))
	settle(t, sim)
	for range 2 {
		sys.Send(sys.PID("sup/inner/a"), &boom{})
		sys.Send(sys.PID("sup/inner/a"), &boom{})
	}
	settle(t, sim)
	for _, s := range sys.Snapshot() {
		if s.State != StateIdle {
			t.Errorf("%s is %s", s.Path, s.State)
		}
	}
}

// TestPitfallP09FailureOfARoot: the failure of a root actor, also as the end of an escalation,
// neither crashes the process nor touches other roots.
func TestPitfallP09FailureOfARoot(t *testing.T) {
	sys := dispatched(t, Options{})
	root(t, sys, "a", probeSpec(probe{receive: func(*Context, any) { panic("boom") }}))
	root(t, sys, "b", probeSpec(probe{}))
	for range 5 {
		sys.Send(sys.PID("a"), &work{})
	}
	eventually(t, "five restarts", func() bool { s := state(t, sys, "a"); return s.Restarts == 5 && s.State == StateIdle })
	if s := state(t, sys, "b"); s.Restarts != 0 {
		t.Errorf("b: %+v", s)
	}
}

// TestPitfallP10SilentDeathOfARoot: OnFatal is called once, whether the root fails too often or
// just stops.
func TestPitfallP10SilentDeathOfARoot(t *testing.T) {
	for name, kill := range map[string]func(*System){
		"stop":   func(sys *System) { sys.lookup("agent").stop() },
		"poison": func(sys *System) { sys.Send(sys.PID("agent"), &actor.PoisonPill{}) },
		"crash": func(sys *System) {
			for range rootBudget + 5 {
				sys.Send(sys.PID("agent"), &boom{})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var fatal []string
			var j journal
			sim, sys := simulated(t, 1, func(o *Options) { o.OnFatal = func(reason string) { fatal = append(fatal, reason) } })
			root(t, sys, "agent", probeSpec(recorder(&j)))
			settle(t, sim)
			kill(sys)
			settle(t, sim)
			if len(fatal) != 1 || !strings.HasPrefix(fatal[0], "root actor agent ") {
				t.Errorf("fatal: %q", fatal)
			}
		})
	}
	sys := NewSystem(Options{OnFatal: func(reason string) { t.Error("an orderly shutdown is no death: " + reason) }})
	root(t, sys, "agent", probeSpec(probe{}))
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPitfallP11PanickingSubscriber: a fault observer may panic; protoactor's event stream would
// end the process. The runtime's own subscriber of dead letters survives letters without a sender
// or a receiver.
func TestPitfallP11PanickingSubscriber(t *testing.T) {
	sys := dispatched(t, Options{OnFault: func(*messages.Fault) { panic("broken observer") }})
	root(t, sys, "a", probeSpec(probe{receive: func(*Context, any) { panic("boom") }}))
	sys.Send(sys.PID("a"), &work{})
	eventually(t, "the restart", func() bool { return state(t, sys, "a").Restarts == 1 })
	sys.Send(nil, nil)
	sys.Send(sys.PID("missing"), nil)
	sys.proto.EventStream.Publish(&actor.DeadLetterEvent{})
	sys.proto.EventStream.Publish("something else")
	if n, _ := sys.DeadLetters(); n != 3 {
		t.Errorf("%d dead letters", n)
	}
}
