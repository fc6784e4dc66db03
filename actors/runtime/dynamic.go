package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// Dynamic makes a supervisor whose children come and go by message: messages.Ensure starts them,
// messages.Release stops them. child makes the Spec of a key; the path of the child ends in
// EscapeName(key). Children fail alone (one-for-one): each is restarted after its own back-off.
//
// A child that fails Policy.QuarantineAfter times in Policy.QuarantineWindow is quarantined: it
// stays suspended and keeps its mailbox. The quarantine ends when Policy.QuarantineFor is over, or
// when a messages.Nudge brings a higher generation than the message on which the child failed and
// earlier nudges.
//
// The supervisor is Ready at once. After a restart of its own it has no children until the next
// Ensure; a Nudge for an unknown key counts as an Ensure.
func Dynamic(kind string, child func(name string) Spec, policy Policy) Spec {
	const unlimited, backoffMax = -1, 30 * time.Second
	policy = policy.withDefaults(unlimited, backoffMax)
	return Spec{Kind: kind, New: func() Behaviour {
		return &dynamic{newSpec: child, policy: policy, children: map[string]*dynamicChild{}}
	}}
}

// dynamic is one incarnation of a Dynamic supervisor.
type dynamic struct {
	newSpec     func(name string) Spec
	policy      Policy
	children    map[string]*dynamicChild // by key
	failures    window
	quarantined int // children in quarantine
}

// dynamicChild is one child. There are ten thousand of them, so the fields that only failing ones
// need are apart.
type dynamicChild struct {
	key        string
	box        *Mailbox // nil: it has ended, or could not be started
	wanted     bool     // false while it stops for good
	stopping   bool     // the supervisor has posted a stop to box
	generation uint64   // highest that is known of
	past       *pastFailures
}

// pastFailures is the state of a child that has failed.
type pastFailures struct {
	retry       retry
	window      window // the quarantine window
	quarantined bool
	generation  uint64 // that was known when the quarantine began
}

// waiting reports whether the child is in back-off or quarantine.
func (ch *dynamicChild) waiting() bool { return ch.past != nil && ch.past.retry.waiting() }

// retryChild ends the back-off or the quarantine of one child.
type retryChild struct{ child *dynamicChild }

var (
	_ supervisor = (*dynamic)(nil)
	_ Inspector  = (*dynamic)(nil)
)

func (d *dynamic) Start(c *Context) {
	d.publish(c)
	c.Ready()
}

// Stop satisfies Behaviour. Children are stopped by protoactor, timers with the incarnation.
func (d *dynamic) Stop(*Context) {}

func (d *dynamic) Receive(c *Context, msg any) {
	switch m := msg.(type) {
	case *messages.Ensure:
		d.ensure(c, m)
	case *messages.Release:
		d.release(m.GetKey())
	case *messages.Nudge:
		d.nudge(c, m)
	case *retryChild:
		d.begin(c, m.child)
	case *resetBackoff:
		if ch := d.find(m.child.pid); ch != nil && ch.box == m.child && ch.waiting() {
			d.begin(c, ch)
		}
	}
}

// find returns the child of a name; nil = there is none. Its actor may have been replaced since.
func (d *dynamic) find(pid *actor.PID) *dynamicChild {
	return d.children[UnescapeName(baseName(pid.GetId()))]
}

// ensure makes the missing children. A complete list also releases the others.
func (d *dynamic) ensure(c *Context, m *messages.Ensure) {
	for _, key := range m.GetKeys() {
		d.want(c, key)
	}
	if !m.GetComplete() || len(d.children) == len(m.GetKeys()) {
		// keys are distinct: there is none to release
		return
	}
	keep := make(map[string]struct{}, len(m.GetKeys()))
	for _, key := range m.GetKeys() {
		keep[key] = struct{}{}
	}
	for _, key := range sortedKeys(d.children) { // sorted for the simulation
		if _, ok := keep[key]; !ok {
			d.release(key)
		}
	}
}

// want makes a child and its actor. A child that is still stopping gets a new actor when the old
// one has ended (pitfall P5).
func (d *dynamic) want(c *Context, key string) {
	ch := d.children[key]
	switch {
	case key == "":
	case ch == nil:
		ch = &dynamicChild{key: key, wanted: true}
		d.children[key] = ch
		d.begin(c, ch)
	default:
		ch.wanted = true
	}
}

// release stops a child whatever state it is in, and cancels its retry.
func (d *dynamic) release(key string) {
	ch := d.children[key]
	if ch == nil {
		return
	}
	ch.wanted = false
	d.reset(ch)
	switch {
	case ch.box == nil:
		delete(d.children, key)
	case !ch.stopping:
		ch.stopping = true
		ch.box.stop()
	}
}

// nudge ends a quarantine that began because of an earlier generation: the new one may not have its
// defect.
func (d *dynamic) nudge(c *Context, m *messages.Nudge) {
	d.want(c, m.GetKey())
	ch := d.children[m.GetKey()]
	if ch == nil {
		return // the empty key
	}
	ch.generation = max(ch.generation, m.GetGeneration())
	if p := ch.past; p != nil && p.quarantined && m.GetGeneration() > p.generation {
		d.begin(c, ch)
	}
}

// reset ends quarantine and back-off.
func (d *dynamic) reset(ch *dynamicChild) {
	if ch.past == nil {
		return
	}
	ch.past.retry.cancel()
	if ch.past.quarantined {
		ch.past.quarantined = false
		d.quarantined--
	}
}

// begin starts or restarts a child that is wanted.
func (d *dynamic) begin(c *Context, ch *dynamicChild) {
	d.reset(ch)
	if ch.past != nil {
		ch.past.retry.began(c.Now())
	}
	if ch.box != nil {
		ch.box.restart()
		return
	}
	spec, err := d.spec(ch.key)
	if err == nil {
		ch.box, err = c.adapter.sys.spawnChild(c, ch.key, spawnRequest{spec: spec})
	}
	if err != nil {
		d.childGone(c, ch, err)
	}
}

// spec makes the Spec of a child. A panic in it fails that child, not the supervisor with all the
// others.
func (d *dynamic) spec(key string) (spec Spec, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("make spec: %v", r)
		}
	}()
	return d.newSpec(key), nil
}

func (d *dynamic) childFailed(c *Context, child *Mailbox, f *Failure) {
	ch := d.find(child.pid)
	switch {
	case ch == nil || ch.box != child || ch.stopping: // a restart would resurrect what is stopping
		c.adapter.sys.report(child, f, decisionStop)
	case ch.waiting(): // it failed twice before it was restarted; the pending retry serves both
		c.adapter.sys.report(child, f, decisionRestart)
	default:
		c.adapter.sys.report(child, f, d.failed(c, ch, f))
	}
}

func (d *dynamic) childEnded(c *Context, child *actor.PID) {
	ch := d.find(child)
	if ch == nil || ch.box == nil || ch.box.pid != child {
		return
	}
	asked := ch.stopping
	ch.box, ch.stopping = nil, false
	switch {
	case !ch.wanted:
		delete(d.children, ch.key)
	case asked:
		// released and ensured again in the meantime: a new actor, without the past of the
		// old one
		ch.past = nil
		d.begin(c, ch)
	default:
		d.childGone(c, ch, ErrStopped)
	}
}

// childGone treats a child that does not exist, although it is wanted, like one that failed.
func (d *dynamic) childGone(c *Context, ch *dynamicChild, cause error) {
	if errors.Is(cause, ErrDown) || errors.Is(cause, ErrShutdown) || ch.waiting() {
		return // the supervisor goes down too, or the pending retry makes a new actor
	}
	f := newFailure(cause, "", nil)
	f.At = c.Now()
	c.adapter.sys.announce(childPath(c, ch.key), f, d.failed(c, ch, f))
}

// failed decides between back-off, quarantine and escalation, and begins it.
func (d *dynamic) failed(c *Context, ch *dynamicChild, f *Failure) (decision string) {
	now := c.Now()
	if d.policy.Budget >= 0 {
		n := d.failures.add(now, d.policy.Window)
		d.publish(c)
		if n > d.policy.Budget {
			c.escalate(newFailure(fmt.Errorf("%w: %d failures in %v, last %s: %w", ErrBudget, n, d.policy.Window, ch.key, f), "", nil))
			return decisionEscalate
		}
	}
	if ch.past == nil {
		ch.past = &pastFailures{}
	}
	p := ch.past
	delay := p.retry.failed(d.policy, c)
	condition, decision := StateBackoff, decisionRestart
	// A poisonous generation that has no nudge yet is known from the message that failed.
	ch.generation = max(ch.generation, f.generation)
	if n := p.window.add(now, d.policy.QuarantineWindow); d.policy.QuarantineAfter > 0 && n >= d.policy.QuarantineAfter {
		p.window = window{} // the next quarantine takes as many failures again
		p.quarantined, p.generation = true, ch.generation
		d.quarantined++
		delay, condition, decision = d.policy.QuarantineFor, StateQuarantined, decisionQuarantine
	}
	if ch.box != nil {
		ch.box.mark(condition, now.Add(delay))
	}
	p.retry.wait(c, delay, &retryChild{ch})
	return decision
}

// publish shows the failures of the children.
func (d *dynamic) publish(c *Context) { d.failures.publish(c, "one-for-one", d.policy) }

// dynamicState is the result of Inspect. The children are visible as actors, so only children with
// a problem are named.
type dynamicState struct {
	Children    int             `json:"children"`
	Quarantined int             `json:"quarantined"`
	Failures    int             `json:"failuresInWindow"`
	Budget      int             `json:"budget"`
	Troubled    []troubledChild `json:"troubled,omitempty"`
}

// troubledChild is a child in back-off or quarantine.
type troubledChild struct {
	Key         string `json:"key"`
	Quarantined bool   `json:"quarantined"`
	Waiting     bool   `json:"waiting"`
	Attempts    int    `json:"attempts"`
	Generation  uint64 `json:"generation"`
}

// shownChildren limits what Inspect shows of a Dynamic supervisor.
const shownChildren = 100

func (d *dynamic) Inspect() any {
	state := dynamicState{
		Children: len(d.children), Quarantined: d.quarantined, Failures: d.failures.count(), Budget: d.policy.Budget,
	}
	for _, key := range sortedKeys(d.children) {
		if ch := d.children[key]; ch.waiting() && len(state.Troubled) < shownChildren {
			state.Troubled = append(state.Troubled, troubledChild{key, ch.past.quarantined, true, ch.past.retry.attempts, ch.generation})
		}
	}
	return state
}

// resetBackoff is a user message to a Dynamic supervisor: restart this child now.
type resetBackoff struct{ child *Mailbox }

// ResetBackoff ends the back-off or the quarantine of an actor below a Dynamic supervisor at once,
// as if its time were over. It has no effect on any other actor.
func (s *System) ResetBackoff(path string) error {
	box := s.lookup(path)
	if box == nil {
		return fmt.Errorf("reset back-off of %s: %w", path, ErrNoActor)
	}
	if parent := s.lookup(parentPath(path)); parent != nil {
		s.Send(parent.pid, &resetBackoff{box})
	}
	return nil
}
