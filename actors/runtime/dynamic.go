package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// Dynamic makes a supervisor whose children come and go by message: messages.Ensure starts them, messages.Release stops them. child makes the
// Spec of a key, which it gets as it is in the messages; the path of the child ends in EscapeName(key). Children fail alone (one-for-one):
// each is restarted after a back-off of its own.
//
// A child that fails Policy.QuarantineAfter times in Policy.QuarantineWindow is put aside: it stays suspended and keeps its mailbox, until
// Policy.QuarantineFor is over or a messages.Nudge brings a higher generation than was known when it was put aside. The generations of the
// message it failed on and of earlier nudges are known.
//
// The supervisor is Ready at once. After a restart of its own it has no children until it is told again; a Nudge for an unknown key counts as
// an Ensure.
func Dynamic(kind string, child func(name string) Spec, policy Policy) Spec {
	const unlimited, backoffMax = -1, 30 * time.Second
	policy = policy.withDefaults(unlimited, backoffMax)
	return Spec{Kind: kind, New: func() Behaviour { return &dynamic{child: child, policy: policy, wards: map[string]*ward{}} }}
}

// dynamic is one incarnation of a Dynamic supervisor.
type dynamic struct {
	child       func(name string) Spec
	policy      Policy
	wards       map[string]*ward // by key
	failures    window
	quarantined int // wards that are put aside
}

// retryWard ends the back-off or the quarantine of one child.
type retryWard struct{ ward *ward }

var (
	_ supervisor = (*dynamic)(nil)
	_ Inspector  = (*dynamic)(nil)
)

// Start satisfies Behaviour.
func (d *dynamic) Start(c *Context) { c.Ready() }

// Stop satisfies Behaviour. Children are stopped by protoactor, timers with the incarnation.
func (d *dynamic) Stop(*Context) {}

// Receive satisfies Behaviour.
func (d *dynamic) Receive(c *Context, msg any) {
	switch m := msg.(type) {
	case *messages.Ensure:
		d.ensure(c, m)
	case *messages.Release:
		d.release(m.GetKey())
	case *messages.Nudge:
		d.nudge(c, m)
	case *retryWard:
		d.begin(c, m.ward)
	case *pardon:
		w := d.wards[UnescapeName(baseName(m.child.Path()))]
		if w != nil && w.box == m.child && w.trouble != nil && w.trouble.retry.waiting() {
			d.begin(c, w)
		}
	}
}

func (d *dynamic) ensure(c *Context, m *messages.Ensure) {
	for _, key := range m.GetKeys() {
		d.want(c, key)
	}
	if !m.GetComplete() {
		return
	}
	keep := make(map[string]struct{}, len(m.GetKeys()))
	for _, key := range m.GetKeys() {
		keep[key] = struct{}{}
	}
	for _, key := range sortedKeys(d.wards) {
		if _, ok := keep[key]; !ok {
			d.release(key)
		}
	}
}

// want makes a ward and its actor. A ward that is still stopping gets a new actor when the old one has ended (pitfall P5).
func (d *dynamic) want(c *Context, key string) {
	w := d.wards[key]
	switch {
	case key == "":
	case w == nil:
		w = &ward{key: key, wanted: true}
		d.wards[key] = w
		d.begin(c, w)
	default:
		w.wanted = true
	}
}

// release stops a child whatever state it is in. Its timer means nothing from now on.
func (d *dynamic) release(key string) {
	w := d.wards[key]
	if w == nil {
		return
	}
	w.wanted = false
	d.forgive(w)
	switch {
	case w.box == nil:
		delete(d.wards, key)
	case !w.stopping:
		w.stopping = true
		w.box.stop()
	}
}

// nudge lifts a quarantine that was imposed because of an earlier generation.
func (d *dynamic) nudge(c *Context, m *messages.Nudge) {
	d.want(c, m.GetKey())
	w := d.wards[m.GetKey()]
	if w == nil {
		return // the empty key
	}
	w.generation = max(w.generation, m.GetGeneration())
	if t := w.trouble; t != nil && t.quarantined && m.GetGeneration() > t.generation {
		d.begin(c, w)
	}
}

// forgive ends quarantine and back-off.
func (d *dynamic) forgive(w *ward) {
	if w.trouble == nil {
		return
	}
	w.trouble.retry.callOff()
	if w.trouble.quarantined {
		w.trouble.quarantined = false
		d.quarantined--
	}
}

// begin starts or restarts a child that is wanted.
func (d *dynamic) begin(c *Context, w *ward) {
	d.forgive(w)
	if w.trouble != nil {
		w.trouble.retry.began(c.Now())
	}
	if w.box != nil {
		w.box.restart()
		return
	}
	spec, err := d.spec(w.key)
	if err == nil {
		w.box, err = c.shell.sys.spawnChild(c, w.key, order{spec: spec})
	}
	if err != nil {
		d.gone(c, w, err)
	}
}

// spec makes the Spec of a child. A panic in it is the trouble of that child, not of all of them.
func (d *dynamic) spec(key string) (spec Spec, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("make spec: %v", r)
		}
	}()
	return d.child(key), nil
}

// childFailed satisfies supervisor.
func (d *dynamic) childFailed(c *Context, child *Mailbox, f *Failure) {
	w := d.wards[UnescapeName(baseName(child.Path()))]
	switch {
	case w == nil || w.box != child || w.stopping: // it is stopping: a restart would only confuse it
		c.shell.sys.report(child, f, decisionStop)
	case w.trouble != nil && w.trouble.retry.waiting(): // it failed twice before it was restarted
		c.shell.sys.report(child, f, decisionRestart)
	default:
		c.shell.sys.report(child, f, d.failed(c, w, f))
	}
}

// childEnded satisfies supervisor.
func (d *dynamic) childEnded(c *Context, child *actor.PID) {
	key := UnescapeName(baseName(child.GetId()))
	w := d.wards[key]
	if w == nil || w.box == nil || w.box.pid != child {
		return
	}
	asked := w.stopping
	w.box, w.stopping = nil, false
	switch {
	case !w.wanted:
		delete(d.wards, key)
	case asked: // released and ensured again in the meantime: a new life, without the past of the old one
		w.trouble = nil
		d.begin(c, w)
	default:
		d.gone(c, w, ErrStopped)
	}
}

// gone treats a child that does not exist, although it should, like one that failed.
func (d *dynamic) gone(c *Context, w *ward, cause error) {
	if errors.Is(cause, ErrDown) || errors.Is(cause, ErrShutdown) {
		return // so does this supervisor
	}
	if w.trouble != nil && w.trouble.retry.waiting() {
		return // it had failed before; the timer will start a new one
	}
	f := newFailure(cause, "", nil)
	f.At = c.Now()
	c.shell.sys.announce(childPath(c, w.key), f, d.failed(c, w, f))
}

// failed decides what to do about a failure and begins to do it.
func (d *dynamic) failed(c *Context, w *ward, f *Failure) (decision string) {
	now := c.Now()
	if d.policy.Budget >= 0 {
		if n := d.failures.add(now, d.policy.Window); n > d.policy.Budget {
			c.escalate(newFailure(fmt.Errorf("%w: %d failures in %v, last %s: %w", ErrBudget, n, d.policy.Window, w.key, f), "", nil))
			return decisionEscalate
		}
	}
	t := w.troubles()
	delay := t.retry.failed(d.policy, c)
	condition, decision := StateBackoff, decisionRestart
	w.generation = max(w.generation, f.generation)
	if n := t.failures.add(now, d.policy.QuarantineWindow); d.policy.QuarantineAfter > 0 && n >= d.policy.QuarantineAfter {
		t.failures = window{}
		t.quarantined, t.generation = true, w.generation
		d.quarantined++
		delay, condition, decision = d.policy.QuarantineFor, StateQuarantined, decisionQuarantine
	}
	if w.box != nil {
		w.box.mark(condition, now.Add(delay))
	}
	t.retry.wait(c, delay, &retryWard{w})
	return decision
}

// ward is one child of a Dynamic supervisor. There are ten thousand of them, so what only failing ones need is apart.
type ward struct {
	key        string
	box        *Mailbox // nil: it has ended, or could not be started
	wanted     bool     // false while it stops for good
	stopping   bool     // box was told to stop
	generation uint64   // highest that is known of
	trouble    *wardTrouble
}

// wardTrouble is the past of a child that has failed.
type wardTrouble struct {
	retry       retry
	failures    window // within the quarantine window
	quarantined bool
	generation  uint64 // that was known when the quarantine began
}

func (w *ward) troubles() *wardTrouble {
	if w.trouble == nil {
		w.trouble = &wardTrouble{}
	}
	return w.trouble
}

// dynamicState is what Inspect shows: the children are visible as actors, so only those with a problem are named.
type dynamicState struct {
	Children    int         `json:"children"`
	Quarantined int         `json:"quarantined"`
	Failures    int         `json:"failuresInWindow"`
	Budget      int         `json:"budget"`
	Troubled    []wardState `json:"troubled,omitempty"`
}

type wardState struct {
	Key         string `json:"key"`
	Quarantined bool   `json:"quarantined"`
	Waiting     bool   `json:"waiting"`
	Attempts    int    `json:"attempts"`
	Generation  uint64 `json:"generation"`
}

// shownWards limits what Inspect shows of a Dynamic supervisor.
const shownWards = 100

// Inspect satisfies Inspector.
func (d *dynamic) Inspect() any {
	state := dynamicState{
		Children: len(d.wards), Quarantined: d.quarantined, Failures: d.failures.count(), Budget: d.policy.Budget,
	}
	for _, key := range sortedKeys(d.wards) {
		w := d.wards[key]
		if w.trouble == nil || !w.trouble.retry.waiting() || len(state.Troubled) == shownWards {
			continue
		}
		state.Troubled = append(state.Troubled, wardState{key, w.trouble.quarantined, true, w.trouble.retry.attempts, w.generation})
	}
	return state
}

// sortedKeys makes the order of a map repeatable.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// baseName is the last element of a path.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
