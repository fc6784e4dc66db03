package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// describing is a Behaviour with an Inspector.
type describing struct {
	probe
	state any
}

func (d *describing) Inspect() any {
	if _, bad := d.state.(boom); bad {
		panic("boom")
	}
	return d.state
}

// TestInspect: the Behaviour is described by its Inspector, or not at all.
func TestInspect(t *testing.T) {
	for _, c := range []struct {
		name      string
		behaviour Behaviour
		want      string
	}{
		{"inspector", &describing{state: map[string]int{"rows": 3}}, `{"rows":3}`},
		{"inspector that panics", &describing{state: boom{}}, `{"error":"inspect: boom"}`},
		{"bad inspector", &describing{state: make(chan int)}, `{"error":"encode state of a: json: unsupported type: chan int"}`},
		{"neither", &probe{}, `{"kind":"test","incarnation":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where 200 ms are enough
				sys := dispatched(t, Options{})
				root(t, sys, "a", Spec{Kind: "test", New: func() Behaviour { return c.behaviour }})
				got, err := sys.Inspect(t.Context(), "a")
				if err != nil || got != c.want || !json.Valid([]byte(got)) {
					t.Errorf("got %s, %v", got, err)
				}
			})
		})
	}
}

// TestInspectWaiting: an actor that gets no messages has a state: one that is held, waits for its
// restart or is in quarantine. Waiting messages are not handled for it.
func TestInspectWaiting(t *testing.T) {
	sim, sys := simulated(t, 1, nil)
	child := Spec{Kind: "child", New: func() Behaviour {
		return &describing{probe{receive: func(_ *Context, msg any) {
			if _, bad := msg.(*boom); bad {
				panic("boom")
			}
		}}, "here"}
	}}
	root(t, sys, "sup", Dynamic("sup", func(string) Spec { return child }, Policy{
		QuarantineAfter: 2, BackoffMin: time.Hour, QuarantineWindow: 3 * time.Hour, QuarantineFor: 3 * time.Hour, Jitter: -1,
	}))
	sys.Send(sys.PID("sup"), &messages.Ensure{Keys: []string{"a"}})
	settle(t, sim)
	shown := func(want State) {
		t.Helper()
		before := state(t, sys, "sup/a")
		text, err := sys.Inspect(t.Context(), "sup/a")
		if after := state(t, sys, "sup/a"); err != nil || text != `"here"` || before.State != want || after.State != want || after.User != before.User || after.Incarnation != before.Incarnation {
			t.Errorf("%s, %v; %+v, then %+v", text, err, before, after)
		}
	}
	shown(StateIdle)
	mailbox(t, sys, "sup/a").Hold()
	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim)
	shown(StateHeld)
	mailbox(t, sys, "sup/a").Release()
	settle(t, sim)
	shown(StateBackoff)
	run(t, sim, 2*time.Hour)
	sys.Send(sys.PID("sup/a"), &boom{})
	settle(t, sim)
	shown(StateQuarantined)
}

// TestAsk: replies, late and double ones, actors that are busy, and a path without an actor.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := dispatched(t, Options{})
		root(t, sys, "a", probeSpec(probe{receive: func(c *Context, msg any) {
			m := msg.(*work)
			time.Sleep(time.Duration(m.n) * time.Millisecond)
			c.Reply(&work{m.n})
			c.Reply(&work{-1}) // only the first counts
		}}))
		if reply, err := sys.Ask(t.Context(), "a", &work{1}); err != nil || reply.(*work).n != 1 {
			t.Errorf("reply %v, %v", reply, err)
		}
		if _, err := sys.Ask(t.Context(), "b", &work{1}); !errors.Is(err, ErrNoActor) {
			t.Errorf("no actor: %v", err)
		}
		start := time.Now()
		_, err := sys.Ask(t.Context(), "a", &work{500})
		if !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "ask a: actor is busy: in work for 200ms") {
			t.Errorf("busy: %v", err)
		}
		if d := time.Since(start); d != askTimeout {
			t.Errorf("patience of %v", d)
		}
		time.Sleep(time.Second) // the late reply is a dead letter
		if n, _ := sys.DeadLetters(); n < 2 {
			t.Errorf("%d dead letters", n)
		}
		mailbox(t, sys, "a").Hold()
		if _, err := sys.Ask(t.Context(), "a", &work{}); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "held, 1 messages wait") {
			t.Errorf("held: %v", err)
		}
		if n := sys.proto.ProcessRegistry; n == nil {
			t.Error("no registry")
		}
	})
}

// TestAskInSimulation: it works until the answer comes, also if that takes long in real time, and
// gives up in virtual time.
func TestAskInSimulation(t *testing.T) {
	sim, sys := simulated(t, 1, nil)
	late := func() {}
	root(t, sys, "a", probeSpec(probe{receive: func(c *Context, _ any) { late(); c.Reply(&work{7}) }}))
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		late = cancel
		if reply, err := sys.Ask(ctx, "a", &work{}); err != nil || reply.(*work).n != 7 {
			t.Errorf("reply %v, %v", reply, err)
		}
	}
	mailbox(t, sys, "a").Hold()
	before := sim.Now()
	if _, err := sys.Ask(t.Context(), "a", &work{}); !errors.Is(err, ErrBusy) {
		t.Errorf("held: %v", err)
	}
	if d := sim.Now().Sub(before); d != askTimeout {
		t.Errorf("patience of %v", d)
	}
}
