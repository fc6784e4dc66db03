package runtime

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// TestContextIdentity: what a Behaviour learns about itself.
func TestContextIdentity(t *testing.T) {
	var j journal
	var log bytes.Buffer
	sim, sys := simulated(t, 1, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	describe := probeSpec(probe{start: func(c *Context) {
		j.add("%s self %s parent %s incarnation %d sender %s", c.Path(), c.Self().GetId(), c.Parent().GetId(), c.Incarnation(), c.Sender().GetId())
		j.add("%t", c.Now().Equal(sim.Now()))
		c.Logger().Info("hello")
	}})
	root(t, sys, "sup", Ordered("sup", []Child{{Name: "x/y", Spec: describe}}, Policy{}))
	root(t, sys, "alone", describe)
	settle(t, sim)
	got := j.take()
	slices.Sort(got)
	want := []string{
		"alone self alone parent  incarnation 1 sender ",
		"sup/x~y self sup/x~y parent sup incarnation 1 sender ",
		"true", "true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(log.String(), "actor=sup/x~y") {
		t.Errorf("log: %s", log.String())
	}
}

// TestRequestAndReply: a request carries its sender, a plain message does not; a reply without a
// receiver is a dead letter.
func TestRequestAndReply(t *testing.T) {
	var j journal
	sim, sys := simulated(t, 1, nil)
	root(t, sys, "server", probeSpec(probe{receive: func(c *Context, msg any) {
		j.add("request from %q", c.Sender().GetId())
		c.Reply(&work{msg.(*work).n + 1})
	}}))
	root(t, sys, "client", probeSpec(probe{
		start: func(c *Context) {
			c.Request(c.PID("server"), &work{1})
			c.Send(c.PID("server"), &work{5})
			c.Send(nil, &boom{})
			c.Send(c.PID("not/there"), &keyed{})
		},
		receive: func(_ *Context, msg any) { j.add("reply %d", msg.(*work).n) },
	}))
	settle(t, sim)
	got := j.take()
	slices.Sort(got)
	if !slices.Equal(got, []string{"reply 2", `request from ""`, `request from "client"`}) {
		t.Errorf("got %q", got)
	}
	count, letters := sys.DeadLetters()
	var lost []string
	for _, l := range letters {
		lost = append(lost, l.Type+" to "+l.To+": "+l.Reason)
	}
	want := []string{"boom to : no such actor", "keyed to not/there: no such actor", "work to : no such actor"}
	if slices.Sort(lost); count != 3 || !slices.Equal(lost, want) {
		t.Errorf("%d dead letters: %q", count, lost)
	}
}

// TestRandIsRepeatable: it depends on seed, path and incarnation only.
func TestRandIsRepeatable(t *testing.T) {
	draw := func(seed uint64, name string) (numbers [2]uint64) {
		sim, sys := simulated(t, seed, nil)
		root(t, sys, name, probeSpec(probe{start: func(c *Context) { numbers[c.Incarnation()-1] = c.Rand().Uint64() }}))
		settle(t, sim)
		if err := sys.Kill(name); err != nil {
			t.Fatal(err)
		}
		settle(t, sim)
		return numbers
	}
	a := draw(1, "a")
	if a != draw(1, "a") {
		t.Error("the same seed gives other numbers")
	}
	if a == draw(2, "a") || a == draw(1, "b") || a[0] == a[1] {
		t.Error("another seed, path or incarnation gives the same numbers")
	}
}

// TestReadyMatters: an actor whose supervisor waits for it is starting until it is ready.
func TestReadyMatters(t *testing.T) {
	sim, sys := simulated(t, 1, nil)
	slow := probeSpec(probe{
		silent:  true,
		start:   func(c *Context) { c.After(time.Minute, &work{}) },
		receive: func(c *Context, _ any) { c.Ready() },
	})
	root(t, sys, "sup", Ordered("sup", []Child{{Name: "slow", Spec: slow}, {Name: "next", Spec: probeSpec(probe{})}}, Policy{}))
	settle(t, sim)
	if s := state(t, sys, "sup/slow"); s.State != StateStarting {
		t.Errorf("slow: %+v", s)
	}
	if _, ok := sys.Actor("sup/next"); ok {
		t.Error("the next sibling has not waited")
	}
	if text, err := sys.Inspect(t.Context(), "sup"); err != nil || !strings.Contains(text, `"waitingFor":"slow"`) {
		t.Errorf("inspect: %s, %v", text, err)
	}
	run(t, sim, time.Hour)
	for _, name := range []string{"sup/slow", "sup/next"} {
		if s := state(t, sys, name); s.State != StateIdle {
			t.Errorf("%s: %+v", name, s)
		}
	}
	sys.Send(sys.PID("sup"), &messages.Ready{Incarnation: 1}) // without a sender
	settle(t, sim)
}
