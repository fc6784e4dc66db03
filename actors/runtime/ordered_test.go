package runtime

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// scripted makes an Ordered supervisor whose children report starts, stops, messages and resyncs; a
// child named in slow becomes ready only when it gets *keyed.
func scripted(j *journal, slow ...string) func(names ...Child) []Child {
	return func(children ...Child) []Child {
		for i := range children {
			name := children[i].Name
			children[i].Spec = probeSpec(probe{
				silent: true,
				start: func(c *Context) {
					j.add("start %s %d", name, c.Incarnation())
					if !slices.Contains(slow, name) {
						c.Ready()
					}
				},
				receive: func(c *Context, msg any) {
					switch m := msg.(type) {
					case *keyed:
						c.Ready()
					case *work:
						j.add("%s %d gets %d", name, c.Incarnation(), m.n)
					case *messages.Resync:
						j.add("resync %s: %s %d", name, m.GetSibling(), m.GetIncarnation())
					case *boom:
						panic("boom")
					}
				},
				stop: func(c *Context) { j.add("stop %s %d", name, c.Incarnation()) },
			})
		}
		return children
	}
}

func expect(t *testing.T, j *journal, want ...string) {
	t.Helper()
	if got := j.take(); !slices.Equal(got, want) {
		t.Errorf("events\n got %s\nwant %s", strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

// TestOrderedReactions: restart, resync and none when the first child fails, and while it is coming
// up again.
func TestOrderedReactions(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	children := scripted(&j, "a")(Child{Name: "a"}, Child{Name: "b", Reaction: ReactRestart}, Child{Name: "c", Reaction: ReactResync},
		Child{Name: "d", Reaction: ReactNone}, Child{Name: "e", Reaction: ReactRestart})
	root(t, sys, "sup", Ordered("sup", children, Policy{Jitter: -1}))
	settle(t, sim)
	expect(t, &j, "start a 1")
	sys.Send(sys.PID("sup/a"), &keyed{})
	settle(t, sim)
	expect(t, &j, "start b 1", "start c 1", "start d 1", "start e 1")

	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim)
	expect(t, &j, "stop a 1", "start a 2")
	for name, held := range map[string]bool{"a": false, "b": true, "c": false, "d": false, "e": true} {
		if s := state(t, sys, "sup/"+name); s.Held != held {
			t.Errorf("%s while a comes up: %+v", name, s)
		}
	}
	for _, name := range []string{"b", "c", "d", "e"} {
		// the gated ones keep it for their next incarnation
		sys.Send(sys.PID("sup/"+name), &work{1})
		settle(t, sim)
	}
	expect(t, &j, "c 1 gets 1", "d 1 gets 1")

	sys.Send(sys.PID("sup/a"), &keyed{})
	settle(t, sim)
	got := j.take()
	// Messages are independent of each other, so only the order of the life cycle is fixed.
	lifecycle := slices.DeleteFunc(slices.Clone(got), func(e string) bool { return !strings.HasPrefix(e, "st") })
	if want := []string{"stop b 1", "start b 2", "stop e 1", "start e 2"}; !slices.Equal(lifecycle, want) {
		t.Errorf("life cycle %v, want %v", lifecycle, want)
	}
	for _, want := range []string{"resync c: a 2", "resync c: b 2", "b 2 gets 1", "e 2 gets 1"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %v", want, got)
		}
	}
	if len(got) != 8 {
		t.Errorf("events %v", got)
	}
}

// TestOrderedIndependentRestart: a child that does not depend on its elder siblings comes up again
// although they are down.
func TestOrderedIndependentRestart(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	children := scripted(&j, "a")(Child{Name: "a"}, Child{Name: "b", Reaction: ReactNone}, Child{Name: "c", Reaction: ReactRestart})
	root(t, sys, "sup", Ordered("sup", children, Policy{}))
	settle(t, sim)
	sys.Send(sys.PID("sup/a"), &keyed{})
	settle(t, sim)
	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim)
	j.take()
	sys.Send(sys.PID("sup/b"), &boom{})
	settle(t, sim)
	expect(t, &j, "stop b 1", "start b 2")
	sys.Send(sys.PID("sup/a"), &keyed{})
	settle(t, sim)
	expect(t, &j, "stop c 1", "start c 2")
}

// TestOrderedIndependentStart: a child with ReactIndependent starts although earlier siblings never
// become ready; later siblings wait for them.
func TestOrderedIndependentStart(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	children := scripted(&j, "a")(Child{Name: "a", Reaction: ReactIndependent}, Child{Name: "b", Reaction: ReactIndependent}, Child{Name: "c", Reaction: ReactNone})
	root(t, sys, "sup", Ordered("sup", children, Policy{}))
	settle(t, sim)
	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim)
	got := j.take()
	slices.Sort(got)
	if !slices.Equal(got, []string{"start a 1", "start a 2", "start b 1", "stop a 1"}) {
		t.Errorf("events %v", got)
	}
	sys.Send(sys.PID("sup/a"), &keyed{})
	settle(t, sim)
	expect(t, &j, "start c 1")
}

// TestOrderedRewinds: a second failure of an elder sibling begins the bring-up again behind it, and
// a late Ready does not count.
func TestOrderedRewinds(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	children := scripted(&j, "b")(Child{Name: "a"}, Child{Name: "b"}, Child{Name: "c"})
	root(t, sys, "sup", Ordered("sup", children, Policy{}))
	settle(t, sim)
	sys.Send(sys.PID("sup/b"), &keyed{})
	settle(t, sim)
	expect(t, &j, "start a 1", "start b 1", "start c 1")
	sys.Send(sys.PID("sup/b"), &boom{})
	settle(t, sim)
	expect(t, &j, "stop b 1", "start b 2") // c waits for b
	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim)
	expect(t, &j, "stop a 1", "start a 2", "stop b 2", "start b 3")
	b := mailbox(t, sys, "sup/b")
	b.sys.Send(sys.PID("sup"), requestFrom(b, &messages.Ready{Incarnation: 2}))
	settle(t, sim)
	expect(t, &j) // c still waits
	sys.Send(sys.PID("sup/b"), &keyed{})
	settle(t, sim)
	expect(t, &j, "stop c 1", "start c 2")
}

// TestOrderedEscalates: beyond the budget the supervisor fails itself and its supervisor brings up
// a new chain. Its incarnation numbers go on, so that nothing of the old chain is taken for new.
func TestOrderedEscalates(t *testing.T) {
	var j journal
	var faults []*messages.Fault
	sim, sys := simulated(t, 1, func(o *Options) { o.OnFault = func(f *messages.Fault) { faults = append(faults, f) } })
	children := scripted(&j)(Child{Name: "a"}, Child{Name: "b"})
	inner := Ordered("inner", children, Policy{Budget: 2, Window: 10 * time.Second})
	root(t, sys, "sup", Ordered("outer", []Child{{Name: "inner", Spec: inner}}, Policy{}))
	settle(t, sim)
	for range 3 {
		sys.Send(sys.PID("sup/inner/b"), &boom{})
		settle(t, sim)
	}
	got := j.take()
	slices.Sort(got[6:8]) // the children of a supervisor that is restarted stop at the same time
	want := []string{"start a 1", "start b 1", "stop b 1", "start b 2", "stop b 2", "start b 3", "stop a 1", "stop b 3", "start a 2", "start b 4"}
	if !slices.Equal(got, want) {
		t.Errorf("events %v", got)
	}
	var decisions []string
	for _, f := range faults {
		decisions = append(decisions, f.GetActor()+" "+f.GetDecision())
	}
	want = []string{"sup/inner/b restart", "sup/inner/b restart", "sup/inner/b escalate", "sup/inner restart"}
	if !slices.Equal(decisions, want) {
		t.Errorf("decisions %v", decisions)
	}
	last := mailbox(t, sys, "sup/inner").Failures()[0]
	if !errors.Is(&last, ErrBudget) || !strings.Contains(last.Reason, "3 failures in 10s, last b: boom") {
		t.Errorf("reason of the escalation: %s", last.Reason)
	}
}

// TestOrderedBudgetIsAWindow: failures that are spread out never escalate.
func TestOrderedBudgetIsAWindow(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "sup", Ordered("sup", scripted(&j)(Child{Name: "a"}), Policy{Budget: 2, Window: 10 * time.Second}))
	for range 50 {
		run(t, sim, 6*time.Second) // two in each window
		if err := sys.Kill("sup/a"); err != nil {
			t.Fatal(err)
		}
		settle(t, sim)
		if s := state(t, sys, "sup"); s.Strategy != "rest-for-one" || s.Budget != 2 || s.BudgetLeft > 1 {
			t.Fatalf("supervisor after a failure: %+v", s)
		}
	}
	settle(t, sim)
	run(t, sim, 4*time.Second) // the failure before the last one leaves the window
	if s := state(t, sys, "sup"); s.BudgetLeft != 1 {
		t.Errorf("budget left: %+v", s)
	}
	if s := state(t, sys, "sup"); s.Restarts != 0 || s.Panics != 0 {
		t.Errorf("supervisor: %+v", s)
	}
	if s := state(t, sys, "sup/a"); s.Restarts != 50 {
		t.Errorf("child: %+v", s)
	}
}

// TestOrderedNestedReady: a supervisor is ready when all of its children are.
func TestOrderedNestedReady(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	inner := Ordered("inner", scripted(&j, "a")(Child{Name: "a"}, Child{Name: "b"}), Policy{})
	outer := append([]Child{{Name: "inner", Spec: inner}}, scripted(&j)(Child{Name: "z"})...)
	root(t, sys, "sup", Ordered("outer", outer, Policy{}))
	settle(t, sim)
	expect(t, &j, "start a 1")
	sys.Send(sys.PID("sup/inner/a"), &keyed{})
	settle(t, sim)
	expect(t, &j, "start b 1", "start z 1")
	sys.Send(sys.PID("sup/inner/b"), &boom{}) // heals inside; the outer siblings do not notice
	settle(t, sim)
	expect(t, &j, "stop b 1", "start b 2")
}

// TestOrderedMergedRestarts: two restarts of a child that waits for its own children are one, and
// the barrier opens with the Ready of the resulting incarnation.
func TestOrderedMergedRestarts(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	inner := Ordered("inner", scripted(&j)(Child{Name: "x"}), Policy{})
	outer := append(scripted(&j)(Child{Name: "a"}), Child{Name: "inner", Spec: inner})
	outer = append(outer, scripted(&j)(Child{Name: "z"})...)
	root(t, sys, "sup", Ordered("outer", outer, Policy{}))
	settle(t, sim)
	box := mailbox(t, sys, "sup/inner")
	first, second := box.restart(), box.restart()
	if first != 2 || second != 3 {
		t.Fatalf("planned %d and %d", first, second)
	}
	settle(t, sim)
	j.take()
	if s := box.State(); s.Incarnation != 3 {
		t.Errorf("inner: %+v", s)
	}
	sys.Send(sys.PID("sup/a"), &boom{}) // the chain goes on to work with its numbers
	settle(t, sim)
	if s := state(t, sys, "sup/z"); s.State != StateIdle || s.Incarnation != 2 {
		t.Errorf("z: %+v", s)
	}
	if s := box.State(); s.State != StateIdle || s.Incarnation != 4 {
		t.Errorf("inner: %+v", s)
	}
}

// TestOrderedFaultReports: what OnFault gets.
func TestOrderedFaultReports(t *testing.T) {
	var faults []*messages.Fault
	var j journal
	sim, sys := simulated(t, 1, func(o *Options) {
		o.OnFault = func(f *messages.Fault) {
			faults = append(faults, f)
			panic("the observer is broken")
		}
	})
	root(t, sys, "sup", Ordered("sup", scripted(&j)(Child{Name: "a"}), Policy{}))
	settle(t, sim)
	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim)
	mailbox(t, sys, "sup/a").stop()
	settle(t, sim)
	if len(faults) != 2 {
		t.Fatalf("faults: %v", faults)
	}
	f := faults[0]
	if f.GetActor() != "sup/a" || f.GetIncarnation() != 1 || f.GetReason() != "boom" || f.GetMessage() != "boom" ||
		f.GetDecision() != "restart" || !strings.Contains(f.GetStack(), "scripted") {
		t.Errorf("fault: %v", f)
	}
	if f := faults[1]; f.GetActor() != "sup/a" || f.GetReason() != ErrStopped.Error() || f.GetDecision() != "restart" {
		t.Errorf("fault: %v", f)
	}
}

// eagerScheduler lets one mailbox work at the very instant it can, inside whatever its supervisor
// is doing: the worst that a concurrent dispatcher could do.
type eagerScheduler struct {
	fifoScheduler
	eager string
}

func (s *eagerScheduler) Ready(m *Mailbox) {
	if m.Path() != s.eager {
		s.fifoScheduler.Ready(m)
		return
	}
	for m.Step() {
	}
}

// TestOrderedRestartsBeforeItOpensTheGate: the old incarnation gets nothing of what was kept for
// the new one.
func TestOrderedRestartsBeforeItOpensTheGate(t *testing.T) {
	var j journal
	eager := &eagerScheduler{}
	sys := NewSystem(Options{Scheduler: eager, Clock: NewSim(SimOptions{})})
	children := scripted(&j, "a")(Child{Name: "a"}, Child{Name: "b"})
	root(t, sys, "sup", Ordered("sup", children, Policy{}))
	eager.run()
	sys.Send(sys.PID("sup/a"), &keyed{})
	eager.run()
	mailbox(t, sys, "sup/a").restart() // like after a failure, without the wait
	mailbox(t, sys, "sup/b").gate(true)
	sys.Send(sys.PID("sup/b"), &work{1})
	sup := mailbox(t, sys, "sup").behaviour().(*ordered)
	sup.states[0].incarnation, sup.states[0].ready, sup.states[1].due, sup.states[1].ready = 2, false, true, false
	eager.run()
	j.take()
	eager.eager = "sup/b"
	sys.Send(sys.PID("sup/a"), &keyed{})
	eager.run()
	expect(t, &j, "stop b 1", "start b 2", "b 2 gets 1")
	if err := sys.Shutdown(canceled(t)); err == nil {
		t.Error("no child has worked")
	}
	eager.run()
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// behaviour looks into the actor.
func (b *Mailbox) behaviour() Behaviour {
	return b.invoker.(interface{ Actor() actor.Actor }).Actor().(*adapter).behaviour
}

// TestNoDeadLettersBeforeTheStart: a message to a declared actor that waits for its turn is no
// loss, a message to an unknown actor is.
func TestNoDeadLettersBeforeTheStart(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	inner := Ordered("inner", scripted(&j)(Child{Name: "c"}), Policy{})
	children := append(scripted(&j, "a")(Child{Name: "a"}, Child{Name: "b"}), Child{Name: "inner", Spec: inner})
	root(t, sys, "sup", Ordered("sup", children, Policy{}))
	settle(t, sim)
	for _, path := range []string{"sup/b", "sup/inner/c", "sup/unknown", "unknown"} {
		sys.Send(sys.PID(path), &work{})
	}
	var to []string
	_, letters := sys.DeadLetters()
	for _, letter := range letters {
		to = append(to, letter.To)
	}
	if want := []string{"sup/unknown", "unknown"}; !slices.Equal(to, want) {
		t.Errorf("dead letters to %v, want %v", to, want)
	}
}

// TestNamesOfTypes: a generic type has its own name, not that of its parameter.
func TestNamesOfTypes(t *testing.T) {
	if got := typeName(&generic[journal]{}) + " " + typeName(&work{}); got != "generic work" {
		t.Error(got)
	}
}

type generic[T any] struct{}
