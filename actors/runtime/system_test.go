package runtime

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// TestRootBudget: twenty failures in ten seconds are answered by restarts, one more by OnFatal,
// once.
func TestRootBudget(t *testing.T) {
	var fatal []string
	var decisions []string
	sim, sys := simulated(t, 1, func(o *Options) {
		o.OnFatal = func(reason string) { fatal = append(fatal, reason) }
		o.OnFault = func(f *messages.Fault) { decisions = append(decisions, f.GetDecision()) }
	})
	root(t, sys, "agent", probeSpec(probe{receive: func(*Context, any) { panic("boom") }}))
	for i := range 25 {
		sys.Send(sys.PID("agent"), &work{})
		run(t, sim, 100*time.Millisecond)
		if want := i >= rootBudget; len(fatal) > 0 != want {
			t.Fatalf("failure %d: fatal %q", i+1, fatal)
		}
	}
	if len(fatal) != 1 || !strings.Contains(fatal[0], "root actor agent failed more than 20 times in 10s: boom") {
		t.Errorf("fatal: %q", fatal)
	}
	if len(decisions) != 21 || decisions[19] != decisionRestart || decisions[20] != decisionFatal {
		t.Errorf("decisions: %v", decisions)
	}
	if s := state(t, sys, "agent"); s.State != StateSuspended || s.Restarts != 20 {
		t.Errorf("agent: %+v", s)
	}
}

// TestRootBudgetIsAWindow: a root that fails now and then goes on.
func TestRootBudgetIsAWindow(t *testing.T) {
	sim, sys := simulated(t, 1, func(o *Options) { o.OnFatal = func(reason string) { t.Error(reason) } })
	root(t, sys, "agent", probeSpec(probe{}))
	for range 100 {
		if err := sys.Kill("agent"); err != nil {
			t.Fatal(err)
		}
		run(t, sim, time.Second)
	}
}

// TestEscalationUpToTheRoot: a child that can never start takes the whole tree down in the end,
// budget by budget.
func TestEscalationUpToTheRoot(t *testing.T) {
	fatal := 0
	sim, sys := simulated(t, 1, func(o *Options) { o.OnFatal = func(string) { fatal++ } })
	hopeless := probeSpec(probe{start: func(*Context) { panic("never") }})
	policy := Policy{Budget: 2, Window: time.Hour, BackoffMax: 10 * time.Millisecond}
	inner := Ordered("inner", []Child{{Name: "a", Spec: hopeless}}, policy)
	root(t, sys, "agent", Ordered("outer", []Child{{Name: "inner", Spec: inner}}, policy))
	run(t, sim, time.Minute)
	if fatal != 1 {
		t.Errorf("fatal %d times", fatal)
	}
	if s := state(t, sys, "agent"); s.State != StateSuspended {
		t.Errorf("agent: %+v", s)
	}
}

// TestSpawnRootErrors: names are taken once, and a system that is shut down takes none.
func TestSpawnRootErrors(t *testing.T) {
	_, sys := simulated(t, 1, nil)
	root(t, sys, "a", probeSpec(probe{}))
	if _, err := sys.SpawnRoot("a", probeSpec(probe{})); !errors.Is(err, ErrNameExists) || !strings.Contains(err.Error(), "spawn root a") {
		t.Errorf("second a: %v", err)
	}
	if _, err := sys.SpawnRoot("deadletter!", probeSpec(probe{})); err != nil {
		t.Error(err)
	}
	if _, err := sys.SpawnRoot("eventstream", probeSpec(probe{})); !errors.Is(err, ErrNameExists) {
		t.Errorf("a name of protoactor: %v", err)
	}
	if _, err := sys.SpawnRoot("eventstream", probeSpec(probe{})); !errors.Is(err, ErrNameExists) {
		t.Errorf("a name of protoactor once more: %v", err)
	}
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sys.SpawnRoot("b", probeSpec(probe{})); !errors.Is(err, ErrShutdown) {
		t.Errorf("after shutdown: %v", err)
	}
}

// TestRestartIsAFailureOnOrder: messages.Restart gives an actor a new incarnation, made by its
// supervisor, and loses no message that waits.
func TestRestartIsAFailureOnOrder(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("a"))
	sys.Send(sys.PID("sup/a"), &messages.Restart{Reason: "test"})
	sys.Send(sys.PID("sup/a"), &work{1})
	settle(t, sim)
	expect(t, &j, "start a 1", "stop a 1", "start a 2", "a 2 gets 1")
	f := mailbox(t, sys, "sup/a").Failures()
	if len(f) != 1 || f[0].Reason != "restart ordered: test" || !errors.Is(&f[0], ErrRestart) || f[0].Message != "Restart" {
		t.Errorf("failures: %+v", f)
	}
}

// TestKill: it goes through the mailbox, ahead of user messages, and is counted as a failure.
func TestKill(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("a"))
	sys.Send(sys.PID("sup/a"), &work{1})
	if err := sys.Kill("sup/a"); err != nil {
		t.Fatal(err)
	}
	if err := sys.Kill("sup/a"); err != nil { // one incarnation fails once
		t.Fatal(err)
	}
	settle(t, sim)
	expect(t, &j, "start a 1", "stop a 1", "start a 2", "a 2 gets 1")
	f := mailbox(t, sys, "sup/a").Failures()
	if len(f) != 1 || f[0].Reason != "killed" || !errors.Is(&f[0], ErrKilled) || f[0].Decision != decisionRestart {
		t.Errorf("failures: %+v", f)
	}
	if err := sys.Kill("sup/missing"); !errors.Is(err, ErrNoActor) {
		t.Errorf("kill no actor: %v", err)
	}
}

// TestFaultHook: before loses the message, after keeps its effects; the hook sees the message
// without envelope.
func TestFaultHook(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, func(o *Options) {
		o.Faults = func(m *Mailbox, msg any, phase Phase) {
			w, ok := msg.(*work)
			if !ok {
				return
			}
			j.add("hook %s %d %d", m.Path(), w.n, phase)
			if w.n == 1 && phase == Before || w.n == 2 && phase == After {
				panic("injected")
			}
		}
	})
	root(t, sys, "a", probeSpec(recorder(&j)))
	settle(t, sim)
	for n := 1; n <= 3; n++ {
		sys.Send(sys.PID("a"), requestFrom(mailbox(t, sys, "a"), &work{n}))
	}
	settle(t, sim)
	expect(t, &j, "hook a 1 0", "hook a 2 0", "work 2", "hook a 2 1", "hook a 3 0", "work 3", "hook a 3 1")
}

// TestFaultHookAtTheEnds: a panic at the start fails the incarnation, one at the end is contained.
func TestFaultHookAtTheEnds(t *testing.T) {
	var j journal
	ends := map[Phase]string{Starting: "starts", Stopping: "stops"}
	sim, sys := simulated(t, 1, func(o *Options) {
		o.Faults = func(m *Mailbox, msg any, phase Phase) {
			if ends[phase] == "" || m.Path() != "sup/a" {
				return
			}
			j.add("%s %d", ends[phase], m.planned())
			if msg != nil || phase == Stopping || m.planned() == 2 {
				panic("injected")
			}
		}
	})
	root(t, sys, "sup", Dynamic("sup", func(string) Spec { return probeSpec(probe{}) }, Policy{BackoffMax: time.Millisecond}))
	tell(t, sim, sys, ensure("a"))
	if err := sys.Kill("sup/a"); err != nil {
		t.Fatal(err)
	}
	run(t, sim, time.Second)
	expect(t, &j, "starts 1", "stops 2", "starts 2", "stops 3", "starts 3")
	if a, ok := sys.Actor("sup/a"); !ok || a.Incarnation != 3 || a.State != StateIdle {
		t.Errorf("%+v", a)
	}
}

// TestNetworkHook: a message is lost, arrives twice, or late and so overtaken; what an actor posts
// to itself does not pass the hook.
func TestNetworkHook(t *testing.T) {
	var j journal
	fates := map[int][]time.Duration{1: nil, 2: {0, 0}, 3: {time.Second}, 4: {0}}
	sim, sys := simulated(t, 1, func(o *Options) {
		o.Network = func(to *Mailbox, msg any) []time.Duration {
			if w, ok := msg.(*work); ok && to.Path() == "a" {
				return fates[w.n]
			}
			return []time.Duration{0}
		}
	})
	root(t, sys, "a", probeSpec(probe{
		start:   func(c *Context) { c.Post()(&work{1}); c.After(2*time.Second, &work{1}) },
		receive: func(_ *Context, msg any) { j.add("work %d", msg.(*work).n) },
	}))
	for n := 1; n <= 4; n++ {
		sys.Send(sys.PID("a"), requestFrom(mailbox(t, sys, "a"), &work{n}))
	}
	run(t, sim, 3*time.Second)
	expect(t, &j, "work 2", "work 2", "work 4", "work 1", "work 3", "work 1")
}

// TestSnapshot: all actors, ordered by path, with their place in the tree.
func TestSnapshot(t *testing.T) {
	var j journal
	sim, sys := troupe(t, &j, Policy{}, nil)
	tell(t, sim, sys, ensure("c", "a", "b"))
	var got []string
	for _, s := range sys.Snapshot() {
		got = append(got, s.Path+" "+s.Parent+" "+s.Kind+" "+string(s.State))
	}
	want := "sup  services idle; sup/a sup probe idle; sup/b sup probe idle; sup/c sup probe idle"
	if strings.Join(got, "; ") != want {
		t.Errorf("got %q", got)
	}
}

// TestQuietLogging: failures and nothing else; protoactor does not write on its own.
func TestQuietLogging(t *testing.T) {
	var log bytes.Buffer
	sim, sys := simulated(t, 1, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	root(t, sys, "a", probeSpec(probe{receive: func(*Context, any) { panic("boom") }}))
	settle(t, sim)
	sys.Send(sys.PID("a"), &work{})
	sys.Send(sys.PID("missing"), &work{})
	settle(t, sim)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], `level=WARN msg="actor failed" actor=a err=boom decision=restart message=work`) {
		t.Errorf("log:\n%s", log.String())
	}
	h := quietHandler{slog.NewTextHandler(&log, nil)}
	if slog.New(h.WithAttrs(nil).WithGroup("g")).Enabled(t.Context(), slog.LevelInfo) {
		t.Error("protoactor's chatter is enabled below a group")
	}
}

// TestDeadLettersLeaveNoGoroutine (T4): protoactor's throttle would sleep for a second, which a
// bubble notices.
func TestDeadLettersLeaveNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := NewSystem(Options{})
		for range 2 * keptLetters {
			sys.Send(sys.PID("missing"), &work{})
		}
		if n, latest := sys.DeadLetters(); n != 2*keptLetters || len(latest) != keptLetters || latest[0].To != "missing" {
			t.Errorf("%d dead letters, latest %v", n, latest)
		}
		if err := sys.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
