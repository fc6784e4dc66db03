package command

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// office is an actor with commands: each has one step that waits until the test says how it ends.
type office struct {
	commands
	undone int
}

// errand asks an office to do something.
type errand struct{ name string }

// verdict ends the step under way.
type verdict struct{ err error }

const officePatience = 10 * time.Second

func (*office) Start(c *runtime.Context)  { c.Ready() }
func (o *office) Stop(c *runtime.Context) { o.release(c) }
func (o *office) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *errand:
		o.submit(c, &command{
			object: m.name, text: "run", method: messages.Method_METHOD_UPDATE,
			transaction: newTransaction(step[*runtime.Context]{
				name: "go there",
				do:   func(*runtime.Context) (bool, error) { return false, nil },
				undo: func(*runtime.Context) (bool, error) { o.undone++; return true, nil },
			}),
		}, officePatience)
	case *verdict:
		o.finish(c, o.ticket(), m.err)
	case *commandExpired:
		o.expired(c, m, officePatience)
	}
}

// client collects the answers to its errands.
type client struct{ answers []*CommandResult }

func (*client) Start(c *runtime.Context) { c.Ready() }
func (*client) Stop(*runtime.Context)    {}
func (l *client) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *errand:
		c.Request(c.PID("root/office"), m)
	case *CommandResult:
		l.answers = append(l.answers, m)
	}
}

// TestCommandsAreAnsweredOnce: whatever happens, everybody who asks gets one answer, and by the deadline.
func TestCommandsAreAnsweredOnce(t *testing.T) {
	type test struct {
		play    func(say func(any), run func(time.Duration))
		answers []error
		undone  int
		events  []string
	}
	for name, tt := range map[string]test{
		"done": {
			play:    func(say func(any), _ func(time.Duration)) { say(&verdict{}); say(&verdict{}) },
			answers: []error{nil, nil}, events: []string{"run", "run", "done: run", "done: run"},
		},
		"the first fails, the second is done": {
			play:    func(say func(any), _ func(time.Duration)) { say(&verdict{errBroken}); say(&verdict{}) },
			answers: []error{errBroken, nil}, undone: 1, events: []string{"run", "run", "failed: run", "done: run"},
		},
		"nothing happens": {
			play:    func(_ func(any), run func(time.Duration)) { run(5 * officePatience) },
			answers: []error{errTooLate, errTooLate}, undone: 2, events: []string{"run", "run", "failed: run", "failed: run"},
		},
		"the actor dies": {
			play:    func(say func(any), run func(time.Duration)) { say(nil); run(5 * officePatience) },
			answers: []error{errInterrupted, errInterrupted}, events: []string{"run", "run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, l := &office{}, &client{}
				journal := &journal{}
				sim := runtime.NewSim(runtime.SimOptions{Seed: 1, Bubble: true})
				sys := runtime.NewSystem(sim.Options())
				lives := []*office{o, {}}
				child := func(name string, make func() runtime.Behaviour) runtime.Child {
					return runtime.Child{Name: name, Spec: runtime.Spec{Kind: name, New: make}, Reaction: runtime.ReactNone}
				}
				_, err := sys.SpawnRoot("root", runtime.Ordered("root", []runtime.Child{
					child("office", func() runtime.Behaviour { next := lives[0]; lives = lives[1:]; return next }),
					child("client", func() runtime.Behaviour { return l }),
				}, runtime.Policy{}))
				if err != nil {
					t.Fatal(err)
				}
				_, err = sys.SpawnRoot(RootName, runtime.Ordered("agent", []runtime.Child{child("journal", func() runtime.Behaviour { return journal })}, runtime.Policy{}))
				if err != nil {
					t.Fatal(err)
				}
				run := func(d time.Duration) {
					if err := sim.RunFor(d); err != nil {
						t.Fatal(err)
					}
				}
				say := func(msg any) {
					if msg == nil {
						_ = sys.Kill("root/office")
					} else {
						sys.Send(sys.PID("root/office"), msg)
					}
					run(time.Millisecond)
				}
				run(time.Millisecond)
				for _, name := range []string{"a", "b"} {
					sys.Send(sys.PID("root/client"), &errand{name})
					run(time.Millisecond)
				}
				tt.play(say, run)
				run(time.Second)
				if len(l.answers) != len(tt.answers) {
					t.Fatalf("%d answers, want %d", len(l.answers), len(tt.answers))
				}
				for i, want := range tt.answers {
					if !errors.Is(l.answers[i].Err, want) || l.answers[i].Cause == 0 {
						t.Errorf("answer %d: %+v, want %v", i, l.answers[i], want)
					}
				}
				if l.answers[0].Cause >= l.answers[1].Cause || o.undone != tt.undone {
					t.Errorf("causes %d and %d, %d taken back, want %d", l.answers[0].Cause, l.answers[1].Cause, o.undone, tt.undone)
				}
				var texts []string
				for _, e := range journal.first {
					texts = append(texts, e.GetText())
				}
				if !slices.Equal(texts, tt.events) {
					t.Errorf("journal %q, want %q", texts, tt.events)
				}
				if err := sys.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
