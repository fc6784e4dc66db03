package runtime

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// Mailbox is the mailbox of one actor and holds its statistics, so that reading them never enters
// the actor. All methods are safe for concurrent use and never block.
//
// System messages (start, stop, restart, failures of children) overtake user messages. User
// messages wait while the actor has not started, is suspended after a failure, is restarting or
// stopping, or its gate is closed. A message with a CoalesceKey removes the pending one of the same
// key and goes to the end of the queue.
type Mailbox struct {
	// Constant after RegisterHandlers.
	sys  *System
	spec Spec
	pid  *actor.PID
	kind *traffic // of all actors of its kind

	// Read and written by one goroutine only, or atomic.
	labelled   context.Context             // of the draining goroutine; nil before the first
	supervises atomic.Pointer[supervision] // nil = the actor is no supervisor

	mu       sync.Mutex // guards the following
	invoker  actor.MessageInvoker
	user     queue
	system   queue
	inc      *incarnation // the present one; nil before the first
	flags    flags
	numbers  numbers
	stats    stats
	failures *failureLog // nil until the first failure
}

// flags are the states of a mailbox. They are independent of each other.
type flags struct {
	barrier    bool // the parent waits for Ready; constant after RegisterHandlers
	scheduled  bool // a call of step or drain is under way or due
	awake      bool // the first incarnation has got its Started
	suspended  bool // failed, waits for the supervisor
	held       bool // gate closed by Hold
	gated      bool // gate closed by the supervisor
	restarting bool // between the restart and the start of the next incarnation
	stopping   bool // never reset
	stopped    bool // never reset
	started    bool // Start of the present incarnation has returned
	ready      bool // the present incarnation has called Ready
}

// numbers are incarnations. A restart is planned when it is posted, the target when it begins, and
// present when the children have stopped.
type numbers struct {
	present uint64 // runs, or ran last; 0 = none yet
	target  uint64 // that the next start begins
	planned uint64 // after all restarts that have been posted
	first   uint64 // of this actor: an Ordered child goes on with the numbers of its predecessor
}

// stats counts. Instants are nanoseconds of System.nanos.
type stats struct {
	posted, handled, coalesced, stale, panics, dropped uint64
	highWater                                          int
	busy                                               int64
	current, last                                      reflect.Type // nil = none
	// start of the present message, end of the last one
	since int64
	// start of the present incarnation
	born int64
}

var _ actor.Mailbox = (*Mailbox)(nil)

// restartRequest begins the next incarnation. Only the mailbox sees this system message.
type restartRequest struct{ incarnation uint64 }

// inspectRequest is inspect for an actor that gets no user messages. Only the mailbox sees
// this system message.
type inspectRequest struct{ envelope *actor.MessageEnvelope }

// failRequest fails the actor. Only the mailbox sees this system message.
type failRequest struct {
	inc     *incarnation // the one to fail; nil = the present one
	failure *Failure
}

// RegisterHandlers satisfies actor.Mailbox; protoactor calls it once. The invoker is protoactor's
// actor context, which knows the PID.
func (b *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	ac := invoker.(interface {
		Self() *actor.PID
		Actor() actor.Actor
	})
	b.pid = ac.Self()
	ac.Actor().(*adapter).inc.box = b
	r := b.sys.spawnRequest(b.Path())
	b.mu.Lock() // senders may have found the actor already
	b.spec, b.kind = r.spec, b.sys.trafficOf(r.spec.Kind)
	b.flags.barrier = r.barrier
	b.numbers = numbers{target: r.incarnation, planned: r.incarnation, first: r.incarnation}
	b.invoker = invoker
	b.mu.Unlock()
	b.sys.register(b)
}

// registered reports whether RegisterHandlers was called. Before that only the queues may be used.
func (b *Mailbox) registered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.invoker != nil
}

// Start satisfies actor.Mailbox. There is nothing to do: the first message starts the actor.
func (b *Mailbox) Start() {}

// UserMessageCount satisfies actor.Mailbox: the number of user messages that wait.
func (b *Mailbox) UserMessageCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.user.len()
}

// PostUserMessage satisfies actor.Mailbox.
func (b *Mailbox) PostUserMessage(msg any) { b.deliver(msg) }

// post queues a user message.
func (b *Mailbox) post(msg any) {
	e := entry{msg: msg, key: coalesceKey(msg), at: b.sys.nanos()}
	b.mu.Lock()
	if b.flags.stopped {
		b.mu.Unlock()
		b.sys.undeliverable(b.Path(), msg, "actor has stopped")
		return
	}
	b.stats.posted++
	if b.user.push(b.sys.lists, e) {
		b.stats.coalesced++
	}
	oldest := b.overflow()
	b.stats.highWater = max(b.stats.highWater, b.user.len())
	wake := b.wake()
	b.mu.Unlock()
	// Everything that may take another lock comes after the unlock.
	if oldest != nil {
		b.sys.undeliverable(b.Path(), oldest, "too many were waiting")
	}
	if wake {
		b.schedule()
	}
}

// overflow removes the first user message when more wait than Spec.Limit; nil = not so many. Lock
// must be held.
func (b *Mailbox) overflow() (oldest any) {
	if b.spec.Limit <= 0 || b.user.len() <= b.spec.Limit {
		return nil
	}
	b.stats.dropped++
	return b.user.pop(b.sys.lists).msg
}

// PostSystemMessage satisfies actor.Mailbox.
func (b *Mailbox) PostSystemMessage(msg any) {
	e := entry{msg: msg, at: b.sys.nanos()}
	b.mu.Lock()
	b.system.push(b.sys.lists, e)
	wake := b.wake()
	b.mu.Unlock()
	if wake {
		b.schedule()
	}
}

// wake reports whether the mailbox has work and is not scheduled; the caller must schedule it then.
// Lock must be held.
func (b *Mailbox) wake() bool {
	if b.flags.scheduled || !b.runnable() {
		return false
	}
	b.flags.scheduled = true
	return true
}

// runnable reports whether there is a message that may be handled now. Lock must be held.
func (b *Mailbox) runnable() bool {
	return b.invoker != nil && (b.system.len() > 0 || b.open() && b.user.len() > 0)
}

// open reports whether user messages may pass. Lock must be held.
func (b *Mailbox) open() bool {
	f := &b.flags
	return f.awake && !f.suspended && !f.held && !f.gated && !f.restarting && !f.stopping
}

// change modifies the flags and schedules the mailbox if that made it runnable.
func (b *Mailbox) change(modify func(f *flags)) {
	b.mu.Lock()
	modify(&b.flags)
	wake := b.wake()
	b.mu.Unlock()
	if wake {
		b.schedule()
	}
}

// inspect posts an inspect, as a system message if user messages wait.
func (b *Mailbox) inspect(e *actor.MessageEnvelope) {
	b.mu.Lock()
	open := b.open()
	b.mu.Unlock()
	if open {
		b.PostUserMessage(e)
	} else {
		b.PostSystemMessage(&inspectRequest{e})
	}
}

// Hold closes the gate for operators and tests: user messages wait, system messages pass. It is
// independent of the gate that an Ordered supervisor closes.
func (b *Mailbox) Hold() { b.change(func(f *flags) { f.held = true }) }

// Release opens the gate that Hold closed.
func (b *Mailbox) Release() { b.change(func(f *flags) { f.held = false }) }

// gate closes or opens the gate of the supervisor.
func (b *Mailbox) gate(closed bool) { b.change(func(f *flags) { f.gated = closed }) }

// Path is the place of the actor in the tree.
func (b *Mailbox) Path() string { return b.pid.GetId() }

// Kind is the kind of the actor.
func (b *Mailbox) Kind() string { return b.spec.Kind }

// restart posts the request for the next incarnation and returns its number. Only the supervisor
// may call it. An actor that is stopping ignores it (pitfall P4).
func (b *Mailbox) restart() uint64 {
	b.mu.Lock()
	b.numbers.planned++
	incarnation := b.numbers.planned
	b.mu.Unlock()
	b.PostSystemMessage(&restartRequest{incarnation})
	return incarnation
}

// planned is the incarnation after all restarts that have been posted.
func (b *Mailbox) planned() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.numbers.planned
}

// stop posts a stop; it overtakes all user messages.
func (b *Mailbox) stop() { b.PostSystemMessage(&actor.Stop{}) }

// postFailure fails the actor, unless inc is set and over by then.
func (b *Mailbox) postFailure(inc *incarnation, f *Failure) {
	b.PostSystemMessage(&failRequest{inc, f})
}

// begin notes that an incarnation starts and returns its number.
func (b *Mailbox) begin(inc *incarnation) uint64 {
	now := b.sys.nanos()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inc = inc
	b.numbers.present = b.numbers.target
	b.flags.restarting, b.flags.started, b.flags.ready = false, false, false
	b.stats.born = now
	if b.failures != nil {
		b.failures.condition = ""
	}
	return b.numbers.present
}

// begun notes that Start has returned.
func (b *Mailbox) begun() { b.change(func(f *flags) { f.started = true }) }

// drop counts a user message that was not given to the Behaviour.
func (b *Mailbox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.dropped++
}

// finish ends the mailbox when its actor has stopped: what still waits becomes dead letters
// (pitfall P7), and the path becomes free.
func (b *Mailbox) finish() {
	b.mu.Lock()
	b.flags.stopped, b.flags.stopping = true, true
	var rest []any
	// The queue gives its memory back, also when a sender keeps the PID.
	for b.user.len() > 0 {
		rest = append(rest, b.user.pop(b.sys.lists).msg)
	}
	b.stats.dropped += uint64(len(rest))
	b.mu.Unlock()
	// Without the lock, like every call out of the mailbox.
	for _, msg := range rest {
		b.sys.undeliverable(b.Path(), msg, "discarded on stop")
	}
	b.sys.unregister(b)
}

// lastIncarnation is the number of the latest incarnation, and whether it must not be used again by
// a next actor of the name.
func (b *Mailbox) lastIncarnation() (number uint64, fixed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.numbers.present, b.numbers.planned), b.flags.barrier
}

// coalesceKey is the key of a messages.Coalescer, "" for any other message. The key of a timer or
// an envelope is the key of its content.
func coalesceKey(msg any) string {
	switch m := msg.(type) {
	case *timer:
		msg = m.msg
	case *actor.MessageEnvelope:
		msg = m.Message
	}
	if c, ok := msg.(messages.Coalescer); ok {
		return c.CoalesceKey()
	}
	return ""
}
