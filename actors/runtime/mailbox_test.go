package runtime

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

// recorder is a probe that writes down what it receives.
func recorder(j *journal) probe {
	return probe{receive: func(c *Context, msg any) {
		switch m := msg.(type) {
		case *work:
			j.add("work %d", m.n)
		case *keyed:
			j.add("%s=%d from %s", m.key, m.n, c.Sender().GetId())
		case *messages.ServiceSpec:
			j.add("spec %d", m.GetGeneration())
		case *boom:
			panic("boom")
		}
	}}
}

// TestCoalescing: a message with a key removes the pending one of its key and waits at the end,
// with its own sender.
func TestCoalescing(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "a", probeSpec(recorder(&j)))
	settle(t, sim)
	box, a := mailbox(t, sys, "a"), sys.PID("a")
	box.Hold()
	from := func(sender string, msg any) {
		sys.Send(a, &actor.MessageEnvelope{Message: msg, Sender: actor.NewPID("nonhost", sender)})
	}
	sys.Send(a, &work{1})
	sys.Send(a, &keyed{"x", 1})
	sys.Send(a, &keyed{"y", 1})
	sys.Send(a, &work{2})
	from("me", &keyed{"x", 2}) // an envelope replaces a bare message
	from("you", &keyed{"z", 1})
	sys.Send(a, &keyed{"z", 2}) // and the other way round
	sys.Send(a, &work{2})       // commands never coalesce
	sys.Send(a, &messages.ServiceSpec{Generation: 1})
	sys.Send(a, &messages.ServiceSpec{Generation: 2})

	if s := state(t, sys, "a"); s.User != 7 || s.Posted != 10 || s.Coalesced != 3 || s.HighWater != 7 || s.State != StateHeld {
		t.Errorf("state behind the gate: %+v", s)
	}
	wantPending := []PendingMessage{
		{Type: "work"},
		{Type: "keyed", Key: "y"},
		{Type: "work"},
		{Type: "keyed", Key: "x", Sender: "me"},
		{Type: "keyed", Key: "z"},
		{Type: "work"},
		{Type: "ServiceSpec", Key: "spec", Body: &messages.ServiceSpec{Generation: 2}},
	}
	if diff := cmp.Diff(wantPending, box.Pending(), protocmp.Transform()); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	box.Release()
	settle(t, sim)
	want := []string{"work 1", "y=1 from ", "work 2", "x=2 from me", "z=2 from ", "work 2", "spec 2"}
	if diff := cmp.Diff(want, j.take()); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	sys.Send(a, &keyed{"x", 3}) // what was handled is not pending any more
	settle(t, sim)
	if diff := cmp.Diff([]string{"x=3 from "}, j.take()); diff != "" {
		t.Errorf("received later (-want +got):\n%s", diff)
	}
}

// TestOrderOfOneSender: several senders and the actor itself post messages while it works. Messages
// of one sender are handled in the order sent, every message without a key is among them, and of
// each key the last value.
func TestOrderOfOneSender(t *testing.T) {
	type sent struct {
		sender, serial int
		key            string
	}
	const self, senders = 0, 4
	rapid.Check(t, func(t *rapid.T) {
		var post func(any)
		var handled []sent
		fifo := &fifoScheduler{}
		sys := NewSystem(Options{Scheduler: fifo, Clock: NewSim(SimOptions{})})
		_, err := sys.SpawnRoot("a", probeSpec(probe{
			start: func(c *Context) { post = c.Post() },
			receive: func(_ *Context, msg any) {
				if k, ok := msg.(*keyed); ok {
					handled = append(handled, sent{k.n % senders, k.n / senders, k.key})
				}
			},
		}))
		if err != nil {
			t.Fatal(err)
		}
		fifo.run()
		last := map[slot]int{}
		plain, keys := 0, rapid.IntRange(1, 20).Draw(t, "keys")
		n := rapid.IntRange(0, 200).Draw(t, "posts")
		for serial := range n {
			sender, key := rapid.IntRange(0, senders-1).Draw(t, "sender"), rapid.IntRange(0, keys).Draw(t, "key")
			msg := &keyed{n: serial*senders + sender}
			if key > 0 {
				msg.key = fmt.Sprint("k", key)
				last[slot{msg.key, sender == self}] = serial
			} else {
				plain++
			}
			if sender == self {
				post(msg)
			} else {
				sys.Send(sys.PID("a"), msg)
			}
			for range rapid.IntRange(0, 2).Draw(t, "steps") {
				fifo.step()
			}
		}
		fifo.run()
		var before [senders]int
		for i, m := range handled {
			if i > 0 && m.serial < before[m.sender] {
				t.Errorf("sender %d: %d is handled after %d", m.sender, m.serial, before[m.sender])
			}
			before[m.sender] = m.serial
			if s := (slot{m.key, m.sender == self}); m.key == "" {
				plain--
			} else if last[s] == m.serial {
				delete(last, s)
			}
		}
		if plain != 0 || len(last) > 0 {
			t.Errorf("not handled: %d without a key, last values %v", plain, last)
		}
	})
}

// TestAKeyThatIsUpdatedWaits: a key that is updated before each step waits until the others are
// handled, and is as old as its first value.
func TestAKeyThatIsUpdatedWaits(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "a", probeSpec(recorder(&j)))
	settle(t, sim)
	box := mailbox(t, sys, "a")
	box.Hold()
	sys.Send(box.pid, &keyed{"x", 0})
	sys.Send(box.pid, &work{1})
	run(t, sim, 2*time.Second)
	sys.Send(box.pid, &work{2})
	sys.Send(box.pid, &keyed{"x", 1})
	if s := box.State(); s.OldestAge != 2*time.Second {
		t.Errorf("oldest age %v", s.OldestAge)
	}
	box.Release()
	for n := 2; box.UserMessageCount() > 1; n++ {
		sys.Send(box.pid, &keyed{"x", n})
		box.Step()
	}
	settle(t, sim)
	if got, want := j.take(), []string{"work 1", "work 2", "x=3 from "}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// TestMailboxIsBoundedByKeys: a flood of level-triggered messages occupies one place for each key.
func TestMailboxIsBoundedByKeys(t *testing.T) {
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "a", probeSpec(probe{}))
	settle(t, sim)
	mailbox(t, sys, "a").Hold()
	for i := range 100_000 {
		sys.Send(sys.PID("a"), &keyed{fmt.Sprint(i % 100), i})
	}
	if s := state(t, sys, "a"); s.User != 100 || s.HighWater != 100 || s.Coalesced != 100_000-100 {
		t.Errorf("state: %+v", s)
	}
}

// TestLimit: where there is a limit, the oldest make room for the newest, and are counted; system
// messages always get through.
func TestLimit(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	spec := probeSpec(recorder(&j))
	spec.Limit = 3
	root(t, sys, "a", spec)
	settle(t, sim)
	mailbox(t, sys, "a").Hold()
	for i := range 5 {
		sys.Send(sys.PID("a"), &work{i})
	}
	sys.Send(sys.PID("a"), &keyed{"x", 1}) // takes the place of work 2
	sys.Send(sys.PID("a"), &keyed{"x", 2}) // and this one the place of the key
	if s := state(t, sys, "a"); s.User != 3 || s.HighWater != 3 || s.Discarded != 3 || s.Coalesced != 1 {
		t.Errorf("state: %+v", s)
	}
	if n, latest := sys.DeadLetters(); n != 3 || latest[0].Reason != "too many were waiting" || latest[0].To != "a" {
		t.Errorf("%d dead letters, %+v", n, latest)
	}
	mailbox(t, sys, "a").Release()
	settle(t, sim)
	if got, want := j.take(), []string{"work 3", "work 4", "x=2 from "}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// TestMessagesBeforeTheStart: an actor that is being spawned can be sent to at once, from any
// goroutine. The race detector sees what is not guarded.
func TestMessagesBeforeTheStart(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 10 // the race detector takes ten times as long
	}
	for n := range rounds {
		var j journal
		sys := dispatched(t, Options{})
		spec, sent := probeSpec(recorder(&j)), make(chan struct{})
		spec.Limit = 1000
		name := fmt.Sprint("a", n)
		go func() {
			defer close(sent)
			for i := range 100 {
				sys.Send(sys.PID(name), &work{i})
			}
		}()
		root(t, sys, name, spec)
		<-sent
		eventually(t, "what was sent is received", func() bool { s := state(t, sys, name); return s.User == 0 })
	}
}

// TestOwnMessagesDoNotReplaceOthers: what an incarnation posts to itself is dropped with it, so it
// must not replace what others sent.
func TestOwnMessagesDoNotReplaceOthers(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	p := recorder(&j)
	p.start = func(c *Context) {
		if c.Incarnation() == 1 {
			c.Post()(&keyed{"x", 2})
		}
	}
	root(t, sys, "a", probeSpec(p))
	sys.Send(sys.PID("a"), &boom{})
	sys.Send(sys.PID("a"), &keyed{"x", 1})
	settle(t, sim)
	if got := j.take(); !slices.Equal(got, []string{"x=1 from "}) {
		t.Errorf("received %v", got)
	}
	if s := state(t, sys, "a"); s.Stale != 1 || s.Restarts != 1 {
		t.Errorf("state: %+v", s)
	}
}

// TestUserMessagesWaitForStart: a name can be addressed before its actor has started; nothing is
// handled before Start.
func TestUserMessagesWaitForStart(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	p := recorder(&j)
	p.start = func(*Context) { j.add("start") }
	root(t, sys, "a", probeSpec(p))
	sys.Send(sys.PID("a"), &work{1}) // no step was taken yet
	if s := state(t, sys, "a"); s.State != StateStarting || s.User != 1 || s.System != 1 || s.Incarnation != 0 {
		t.Errorf("state: %+v", s)
	}
	settle(t, sim)
	if got := j.take(); !slices.Equal(got, []string{"start", "work 1"}) {
		t.Errorf("events %v", got)
	}
}

// TestPostBeforeRegistration: protoactor puts an actor into its registry before it calls
// RegisterHandlers; a sender that knows the name must not crash in between.
func TestPostBeforeRegistration(t *testing.T) {
	_, sys := simulated(t, 1, nil)
	box := &Mailbox{sys: sys}
	box.PostUserMessage(&work{})
	box.PostSystemMessage(&actor.Stop{})
	if box.runnable() || box.UserMessageCount() != 1 {
		t.Error("a mailbox without an actor wants to run")
	}
	// Between the registration and Started, which protoactor posts next.
	box = &Mailbox{sys: sys, invoker: idleInvoker{}}
	box.PostUserMessage(&work{})
	if box.runnable() {
		t.Error("a user message is handled before Started")
	}
	box.PostSystemMessage(&actor.Started{})
	if !box.runnable() {
		t.Error("Started does not wake the mailbox")
	}
}

// idleInvoker is an actor that does nothing.
type idleInvoker struct{ actor.MessageInvoker }

// TestSystemMessagesOvertake: a restart passes a thousand waiting messages and a closed gate, and
// the new incarnation gets them all.
func TestSystemMessagesOvertake(t *testing.T) {
	const n = 1000
	byIncarnation := map[uint64]int{}
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "a", probeSpec(probe{receive: func(c *Context, _ any) { byIncarnation[c.Incarnation()]++ }}))
	settle(t, sim)
	box := mailbox(t, sys, "a")
	box.Hold()
	for range n {
		sys.Send(sys.PID("a"), &work{})
	}
	box.restart()
	settle(t, sim)
	if s := box.State(); s.Incarnation != 2 || s.User != n || !s.Held {
		t.Errorf("behind the gate: %+v", s)
	}
	box.Release()
	settle(t, sim)
	if byIncarnation[1] != 0 || byIncarnation[2] != n {
		t.Errorf("messages by incarnation: %v", byIncarnation)
	}
}

// TestMailboxStatistics: counters, ages and the current message, seen from outside and from inside
// a handler.
func TestMailboxStatistics(t *testing.T) {
	var inside ActorState
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "a", probeSpec(probe{receive: func(c *Context, msg any) {
		if _, ok := msg.(*keyed); ok {
			inside, _ = c.adapter.sys.Actor("a")
		}
	}}))
	settle(t, sim)
	box := mailbox(t, sys, "a")
	box.Hold()
	sys.Send(sys.PID("a"), &work{1})
	run(t, sim, time.Second)
	sys.Send(sys.PID("a"), &keyed{"k", 1})
	run(t, sim, 2*time.Second)
	sys.Send(sys.PID("a"), &keyed{"k", 2})
	s := box.State()
	if s.OldestAge != 3*time.Second || s.Uptime != 4*time.Second || s.Last != "Started" || s.Kind != "probe" || s.Parent != "" {
		t.Errorf("held: %+v", s)
	}
	if p := box.Pending(); p[1].Age != 2*time.Second {
		t.Errorf("the age of a key begins with its first message: %+v", p)
	}
	box.Release()
	settle(t, sim)
	if inside.State != StateRunning || inside.Current != "keyed" || inside.Last != "work" || inside.User != 0 {
		t.Errorf("inside: %+v", inside)
	}
	if s := box.State(); s.State != StateIdle || s.Current != "" || s.Last != "keyed" || s.Handled != 3 || s.HighWater != 2 || s.Posted != 3 {
		t.Errorf("idle: %+v", s)
	}
}

// TestStateOfABlockedActor: the statistics can be read while a handler blocks, and name its
// message.
func TestStateOfABlockedActor(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	sys := dispatched(t, Options{})
	root(t, sys, "a", probeSpec(probe{receive: func(*Context, any) { close(entered); <-leave }}))
	sys.Send(sys.PID("a"), &work{})
	<-entered
	sys.Send(sys.PID("a"), &boom{})
	eventually(t, "time passes", func() bool { return state(t, sys, "a").CurrentFor > 0 })
	if s := state(t, sys, "a"); s.State != StateRunning || s.Current != "work" || s.User != 1 {
		t.Errorf("state: %+v", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := sys.Shutdown(ctx); err == nil {
		t.Error("shut down although an actor is blocked")
	}
	close(leave)
}

// TestFailuresAreKept: the last eight, with stack, message and decision.
func TestFailuresAreKept(t *testing.T) {
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "sup", Ordered("sup", []Child{{Name: "a", Spec: probeSpec(probe{receive: func(_ *Context, msg any) {
		panic(fmt.Errorf("number %d: %w", msg.(*work).n, ErrBusy))
	}})}}, Policy{Budget: -1}))
	settle(t, sim)
	for i := range 10 {
		sys.Send(sys.PID("sup/a"), &work{i})
	}
	run(t, sim, time.Minute)
	failures := mailbox(t, sys, "sup/a").Failures()
	if len(failures) != keptFailures {
		t.Fatalf("%d failures", len(failures))
	}
	for i, f := range failures {
		if f.Reason != fmt.Sprintf("number %d: actor is busy", i+2) || f.Incarnation != uint64(i+3) || f.Message != "work" ||
			f.Decision != decisionRestart || !slices.Contains(stackFunctions(f.Stack), "TestFailuresAreKept") {
			t.Errorf("failure %d: %+v", i, f)
		}
	}
	if s := state(t, sys, "sup/a"); s.Panics != 10 || s.LastFailure != "number 9: actor is busy" || s.Restarts != 10 {
		t.Errorf("state: %+v", s)
	}
}

// TestNetworkAndAnActorInTheMaking: an actor can be found before its mailbox is registered. A
// message that comes between the two waits, and the hook does not see a mailbox that has no path
// yet.
func TestNetworkAndAnActorInTheMaking(t *testing.T) {
	asked := 0
	sys := NewSystem(Options{Network: func(to *Mailbox, _ any) []time.Duration {
		asked += len(to.Path() + to.Kind())
		return nil
	}})
	b := &Mailbox{sys: sys}
	b.PostUserMessage(&work{})
	if n := b.UserMessageCount(); n != 1 || asked != 0 {
		t.Errorf("%d messages wait, the hook saw %d", n, asked)
	}
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
