package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// Ordered makes a supervisor of a fixed list of children (rest-for-one with a barrier). They start
// in order, each when the one before has called Ready; one with ReactIndependent starts at once. A
// child that fails is restarted after a back-off. When it is ready again, the later siblings follow
// in order, each according to its Reaction. Meanwhile the gates of siblings that will be restarted
// are closed. PIDs and mailboxes survive, so that a planned restart loses no message. The
// supervisor itself is Ready when all of its children have been up for the first time.
//
// Only a child with ReactRestart that fails waits for earlier siblings that are down at that time.
// More failures than Policy.Budget in Policy.Window fail the supervisor itself. A child that stops
// without failing is started again like a failed one.
func Ordered(kind string, children []Child, policy Policy) Spec {
	const budget, backoffMax = 10, 500 * time.Millisecond
	policy = policy.withDefaults(budget, backoffMax)
	return Spec{Kind: kind, New: func() Behaviour { return &ordered{children: children, policy: policy} }, Children: children}
}

// ordered is one incarnation of an Ordered supervisor.
type ordered struct {
	children []Child
	policy   Policy
	states   []childState
	failures window
	allUp    bool // all children are ready; reset by a failure
	wasUp    bool // all children have been up once
}

// childState is the state of one child.
type childState struct {
	box         *Mailbox // nil: no actor has this name
	incarnation uint64   // the one that was requested last; only its Ready counts
	begun       bool     // it was started once, so the ordered start does not hold it back any more
	due         bool     // to be started or restarted when its turn comes
	ready       bool
	retry       retry // back-off; while it runs the child is not started
}

// retryIndex ends the back-off of the child with this index.
type retryIndex struct{ index int }

var (
	_ supervisor = (*ordered)(nil)
	_ Inspector  = (*ordered)(nil)
)

func (o *ordered) Start(c *Context) {
	o.publish(c)
	o.states = make([]childState, len(o.children))
	for i := range o.states {
		o.states[i].due = true
	}
	o.advance(c)
}

// Stop satisfies Behaviour. Children are stopped by protoactor, timers with the incarnation.
func (o *ordered) Stop(*Context) {}

func (o *ordered) Receive(c *Context, msg any) {
	switch m := msg.(type) {
	case *messages.Ready:
		o.childReady(c, m.GetIncarnation())
	case *retryIndex:
		o.states[m.index].retry.cancel()
		o.advance(c)
	}
}

// childReady opens the barrier behind a child. A Ready of an earlier incarnation does not count.
func (o *ordered) childReady(c *Context, incarnation uint64) {
	i := o.index(c.Sender())
	if i < 0 {
		return
	}
	s := &o.states[i]
	if s.due || s.ready || s.incarnation != incarnation {
		return
	}
	s.ready = true
	o.resync(c, i) // at the first start there are no later siblings yet
	o.advance(c)
}

// resync sends messages.Resync to the later siblings that keep their state.
func (o *ordered) resync(c *Context, sibling int) {
	s := &o.states[sibling]
	for i := sibling + 1; i < len(o.states); i++ {
		if later := o.states[i]; o.children[i].Reaction == ReactResync && later.box != nil {
			c.Send(later.box.pid, &messages.Resync{Sibling: o.children[sibling].Name, Incarnation: s.incarnation})
		}
	}
}

// advance starts or restarts every child whose turn it is.
func (o *ordered) advance(c *Context) {
	ready := true // all earlier siblings are ready
	for i := range o.states {
		if c.over() {
			return // a child could not be started, and that exceeded the budget
		}
		s := &o.states[i]
		// After the ordered start only a child that depends on earlier siblings has to wait
		// for them.
		reaction := o.children[i].Reaction
		independent := reaction == ReactIndependent || s.begun && reaction != ReactRestart
		if s.due && !s.retry.waiting() && (ready || independent) {
			o.begin(c, i)
		}
		ready = ready && s.ready
	}
	if ready && !o.allUp {
		o.allUp = true
		c.adapter.sys.observe(c.Path(), "all-up")
		if !o.wasUp {
			o.wasUp = true
			c.Ready()
		}
	}
}

// begin starts or restarts one child.
func (o *ordered) begin(c *Context, i int) {
	s := &o.states[i]
	s.retry.began(c.Now())
	if s.box != nil {
		s.due = false
		// First the restart, which passes a closed gate, then the gate. In the other order
		// the old incarnation could take messages that were kept for the new one.
		s.incarnation = s.box.restart()
		s.box.gate(false)
		return
	}
	box, err := c.adapter.sys.spawnChild(c, o.children[i].Name, spawnRequest{spec: o.children[i].Spec, barrier: true})
	switch {
	case errors.Is(err, ErrDown), errors.Is(err, ErrShutdown):
		return // the supervisor goes down too
	case err != nil:
		o.childGone(c, i, err)
		return
	}
	s.box, s.incarnation, s.begun, s.due = box, box.planned(), true, false
}

func (o *ordered) childFailed(c *Context, child *Mailbox, f *Failure) {
	i := o.index(child.pid)
	if i < 0 || o.states[i].retry.waiting() {
		// not a child any more, or it failed twice before it was restarted
		c.adapter.sys.report(child, f, decisionRestart)
		return
	}
	decision := decisionRestart
	if !o.failed(c, i, f) {
		decision = decisionEscalate
	}
	c.adapter.sys.report(child, f, decision)
}

// childEnded satisfies supervisor. The supervisor stops its children only when it stops itself, so
// this child is still needed.
func (o *ordered) childEnded(c *Context, child *actor.PID) {
	if i := o.index(child); i >= 0 {
		o.states[i].box = nil
		o.childGone(c, i, ErrStopped)
	}
}

// childGone treats a child that is gone like one that failed.
func (o *ordered) childGone(c *Context, i int, cause error) {
	f := newFailure(cause, "", nil)
	f.At, f.Incarnation = c.Now(), o.states[i].incarnation
	decision := decisionRestart
	if !o.failed(c, i, f) {
		decision = decisionEscalate
	}
	c.adapter.sys.announce(childPath(c, o.children[i].Name), f, decision)
}

// failed schedules the retry of a failed child and closes the gates behind it. It reports false
// when the budget is exceeded and the supervisor itself fails.
func (o *ordered) failed(c *Context, i int, f *Failure) bool {
	now := c.Now()
	n := o.failures.add(now, o.policy.Window)
	o.publish(c)
	c.adapter.sys.observe(c.Path(), "fail:"+o.children[i].Name)
	if o.policy.Budget >= 0 && n > o.policy.Budget {
		c.adapter.sys.observe(c.Path(), "escalate")
		c.escalate(newFailure(fmt.Errorf("%w: %d failures in %v, last %s: %w", ErrBudget, n, o.policy.Window, o.children[i].Name, f), "", nil))
		return false
	}
	o.allUp = false
	s := &o.states[i]
	s.due, s.ready = true, false
	delay := s.retry.failed(o.policy, c)
	s.retry.wait(c, delay, &retryIndex{i})
	if s.box != nil {
		s.box.mark(StateBackoff, now.Add(delay))
	}
	for j := i + 1; j < len(o.states); j++ {
		if later := &o.states[j]; later.box != nil && o.children[j].Reaction == ReactRestart {
			// the next incarnation gets the messages that the gate keeps
			later.box.gate(true)
			later.due, later.ready = true, false
		}
	}
	return true
}

// publish shows the failures of the children.
func (o *ordered) publish(c *Context) { o.failures.publish(c, "rest-for-one", o.policy) }

// index finds a child by its PID; -1 = it is not a child. The pointer is compared, because an
// earlier actor of the name has an equal PID.
func (o *ordered) index(pid *actor.PID) int {
	for i := range o.states {
		if box := o.states[i].box; box != nil && box.pid == pid {
			return i
		}
	}
	return -1
}

// orderedState is the result of Inspect.
type orderedState struct {
	AllUp      bool           `json:"allUp"`
	Failures   int            `json:"failuresInWindow"`
	Budget     int            `json:"budget"`
	WaitingFor string         `json:"waitingFor,omitempty"`
	Children   []orderedChild `json:"children"`
}

// orderedChild is one child as Inspect shows it.
type orderedChild struct {
	Name        string `json:"name"`
	Reaction    string `json:"reaction"`
	Incarnation uint64 `json:"incarnation"`
	Ready       bool   `json:"ready"`
	Due         bool   `json:"due"`
}

func (o *ordered) Inspect() any {
	state := orderedState{AllUp: o.allUp, Failures: o.failures.count(), Budget: o.policy.Budget}
	for i, s := range o.states {
		child := o.children[i]
		if !s.ready && state.WaitingFor == "" {
			state.WaitingFor = child.Name
		}
		state.Children = append(state.Children, orderedChild{child.Name, child.Reaction.String(), s.incarnation, s.ready, s.due})
	}
	return state
}
