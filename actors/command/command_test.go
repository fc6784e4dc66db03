package command

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker is an actor with commands. The one operation of each waits until the test says how it
// ends.
type worker struct {
	Queue
	undone *int
	after  *[]error
}

// job asks a worker to do something; result ends the operation under way.
type (
	job    struct{ name string }
	result struct{ err error }
)

const testDeadline = 10 * time.Second

func (*worker) Start(c *runtime.Context) { c.Ready() }

func (w *worker) Stop(c *runtime.Context) { w.Interrupt(c) }

func (w *worker) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *job:
		w.Submit(c, &Command{
			Object: m.name, Text: "run", Method: messages.Method_METHOD_UPDATE,
			After: func(_ *runtime.Context, err error) { *w.after = append(*w.after, err) },
			Transaction: NewTransaction(Operation[*runtime.Context]{
				Name: "go there",
				Do:   func(*runtime.Context) (bool, error) { return false, nil },
				Undo: func(*runtime.Context) (bool, error) { *w.undone++; return true, nil },
			}),
		}, testDeadline)
	case *result:
		w.Finish(c, w.Ticket(), m.err)
	case *Expired:
		w.Expire(c, m, testDeadline)
	}
}

// caller passes jobs on as requests and collects the answers.
type caller struct{ answers *[]*Result }

func (*caller) Start(c *runtime.Context) { c.Ready() }

func (*caller) Stop(*runtime.Context) {}

func (l *caller) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *job:
		c.Request(c.PID(address.Interfaces), m)
	case *Result:
		*l.answers = append(*l.answers, m)
	}
}

// TestCommandsAreAnsweredOnce: whatever happens, every command gets one answer, and by the
// deadline.
func TestCommandsAreAnsweredOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		play    func(s *probe.Stage)
		answers []error
		undone  int
		after   int
		events  []string
	}{
		"done": {
			play:    func(s *probe.Stage) { s.Tell(&result{}); s.Tell(&result{}) },
			answers: []error{nil, nil}, after: 2, events: []string{"run", "run", "done: run", "done: run"},
		},
		"the first fails, the second is done": {
			play:    func(s *probe.Stage) { s.Tell(&result{errBroken}); s.Tell(&result{}) },
			answers: []error{errBroken, nil}, undone: 1, after: 2, events: []string{"run", "run", "failed: run", "done: run"},
		},
		"nothing happens": {
			play:    func(s *probe.Stage) { s.Run(5 * testDeadline) },
			answers: []error{ErrTooLate, ErrTooLate}, undone: 2, after: 2, events: []string{"run", "run", "failed: run", "failed: run"},
		},
		"the second waits too long": {
			play:    func(s *probe.Stage) { s.Run(testDeadline - time.Second); s.Tell(&result{}); s.Run(5 * testDeadline) },
			answers: []error{nil, ErrTooLate}, undone: 1, after: 2, events: []string{"run", "run", "done: run", "failed: run"},
		},
		"a result comes too late": {
			play:    func(s *probe.Stage) { s.Run(5 * testDeadline); s.Tell(&result{}) },
			answers: []error{ErrTooLate, ErrTooLate}, undone: 2, after: 2, events: []string{"run", "run", "failed: run", "failed: run"},
		},
		"the actor fails": {
			play:    func(s *probe.Stage) { s.Kill(); s.Run(5 * testDeadline) },
			answers: []error{ErrInterrupted, ErrInterrupted}, events: []string{"run", "run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := probe.New(t)
			undone, after, answers := 0, []error{}, []*Result{}
			s.Start(address.Interfaces, probe.Actors{
				address.Interfaces: func() runtime.Behaviour { return &worker{undone: &undone, after: &after} },
				address.Registry:   func() runtime.Behaviour { return &caller{&answers} },
			})
			for _, name := range []string{"a", "b"} {
				s.System.Send(s.System.PID(address.Registry), &job{name})
				s.Run(time.Millisecond)
			}
			tt.play(s)
			s.Run(time.Second)
			if len(answers) != len(tt.answers) {
				t.Fatalf("%d answers, want %d", len(answers), len(tt.answers))
			}
			for i, want := range tt.answers {
				if !errors.Is(answers[i].Err, want) || answers[i].Cause == 0 {
					t.Errorf("answer %d: %+v, want %v", i, answers[i], want)
				}
			}
			if answers[0].Cause >= answers[1].Cause || undone != tt.undone || len(after) != tt.after {
				t.Errorf("causes %d and %d, %d rolled back, want %d; %d outcomes", answers[0].Cause, answers[1].Cause, undone, tt.undone, len(after))
			}
			var texts []string
			for _, e := range probe.All[*messages.Event](s, address.Journal) {
				texts = append(texts, e.GetText())
			}
			if !slices.Equal(texts, tt.events) {
				t.Errorf("journal %q, want %q", texts, tt.events)
			}
		})
	}
}

// TestAnswerNamesTheOperation: the error of a deadline names the operation under way.
func TestAnswerNamesTheOperation(t *testing.T) {
	s := probe.New(t)
	undone, after := 0, []error{}
	s.Start(address.Interfaces, probe.Actors{address.Interfaces: func() runtime.Behaviour { return &worker{undone: &undone, after: &after} }})
	if err := s.Ask(&job{"a"}).(*Result).Err; !errors.Is(err, ErrTooLate) || !strings.HasSuffix(err.Error(), ": go there") {
		t.Errorf("the answer is %v", err)
	}
}

// TestMeaning: the caller of a command learns the kind of error.
func TestMeaning(t *testing.T) {
	refused := Refusal("VPP has no such interface")
	for _, tt := range []struct{ err, means error }{
		{nil, nil},
		{errBroken, nil},
		{refused, ErrState},
		{errors.Join(refused, ErrNotReverted), ErrState},
		{ErrTooLate, ErrTooLate},
		{ErrInterrupted, ErrAway},
		{ErrNotConnected, ErrAway},
		{ErrNotLoaded, ErrAway},
		{link.ErrDown, ErrAway},
		{errors.Join(link.ErrDown, ErrNotReverted), ErrAway},
	} {
		if got := Meaning(tt.err); !errors.Is(got, tt.means) {
			t.Errorf("%v means %v, want %v", tt.err, got, tt.means)
		}
	}
}
