package runtime

import (
	"reflect"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// Mailbox is the mailbox of one actor, and everything that is known about the actor from outside: looking at it never enters the actor.
// All methods are safe for concurrent use and never block.
//
// System messages (start, stop, restart, failures of children) overtake user messages. User messages wait while the actor has not
// started, is suspended after a failure, is restarting or stopping, or its gate is closed. A message with a CoalesceKey removes the
// pending one of the same key and goes to the end of the queue.
type Mailbox struct {
	// Written once in RegisterHandlers, before anything runs.
	sys  *System
	spec Spec
	pid  *actor.PID

	mu      sync.Mutex // guards the following
	invoker actor.MessageInvoker
	user    queue
	system  queue
	life    *life // of the present incarnation; nil before the first
	flags   flags
	numbers numbers
	stats   stats
	trouble *trouble // nil until something went wrong
}

// flags are the states of a mailbox. They are independent of each other.
type flags struct {
	barrier    bool // the parent waits for Ready; constant after RegisterHandlers
	scheduled  bool // somebody is going to call step
	awake      bool // the first incarnation has been given its Started
	suspended  bool // failed, waits for the supervisor
	held       bool // gate closed by Hold
	gated      bool // gate closed by the supervisor
	restarting bool // between the restart and the start of the next incarnation
	stopping   bool // never reset
	stopped    bool // never reset
	started    bool // Start of the present incarnation has returned
	ready      bool // the present incarnation has called Ready
}

// numbers counts incarnations.
type numbers struct {
	present uint64 // incarnation that lives or lived last; 0 = none yet
	target  uint64 // incarnation that the next start begins
	planned uint64 // incarnation after all restarts that have been posted
	first   uint64
}

// stats counts. Instants are nanoseconds of System.nanos.
type stats struct {
	posted, handled, coalesced, stale, panics, dropped uint64
	highWater                                          int
	busy                                               int64
	current, last                                      reflect.Type // nil = none
	since                                              int64        // start of the present message, end of the last one
	born                                               int64        // start of the present incarnation
}

// trouble is what only failing actors need.
type trouble struct {
	failures  []*Failure // the latest, oldest first
	condition State      // StateBackoff or StateQuarantined as told by the supervisor, "" otherwise
	until     time.Time  // when the condition ends
}

var _ actor.Mailbox = (*Mailbox)(nil)

// restartOrder makes the mailbox start the next incarnation. It is a system message of the mailbox only.
type restartOrder struct{ incarnation uint64 }

// failOrder makes the mailbox fail. It is a system message of the mailbox only.
type failOrder struct {
	life    *life // the incarnation to fail; nil = whichever lives
	failure *Failure
}

// RegisterHandlers satisfies actor.Mailbox; protoactor calls it once. The invoker is protoactor's actor context, which knows the PID.
func (b *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	ac := invoker.(interface {
		Self() *actor.PID
		Actor() actor.Actor
	})
	b.pid = ac.Self()
	ac.Actor().(*shell).life.box = b
	o := b.sys.orderFor(b.Path())
	b.mu.Lock() // from here on anybody may be sending
	b.spec = o.spec
	b.flags.barrier = o.barrier
	b.numbers = numbers{target: o.incarnation, planned: o.incarnation, first: o.incarnation}
	b.invoker = invoker
	b.mu.Unlock()
	b.sys.register(b)
}

// registered reports whether the mailbox is that of an actor by now. Before that only the queues may be used.
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
func (b *Mailbox) PostUserMessage(msg any) { b.travel(msg) }

// post queues a user message; l is set for what an incarnation posts to itself.
func (b *Mailbox) post(msg any, l *life) {
	e := entry{msg: msg, key: coalesceKey(msg), at: b.sys.nanos(), life: l}
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
	if oldest != nil {
		b.sys.undeliverable(b.Path(), oldest, "too many were waiting")
	}
	if wake {
		b.schedule()
	}
}

// overflow takes out the oldest user message when more wait than may; nil = they do not. Lock must be held.
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

// wake reports whether the mailbox has work and nobody is going to do it yet, and takes note that the caller will schedule it. Lock must be
// held.
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

// change modifies the flags and schedules the mailbox if that let it go on.
func (b *Mailbox) change(modify func(f *flags)) {
	b.mu.Lock()
	modify(&b.flags)
	wake := b.wake()
	b.mu.Unlock()
	if wake {
		b.schedule()
	}
}

// Hold closes the gate for operators and tests: user messages wait, system messages pass. It is independent of the gate that an Ordered
// supervisor closes.
func (b *Mailbox) Hold() { b.change(func(f *flags) { f.held = true }) }

// Release opens the gate that Hold closed.
func (b *Mailbox) Release() { b.change(func(f *flags) { f.held = false }) }

// gate closes or opens the gate of the supervisor.
func (b *Mailbox) gate(closed bool) { b.change(func(f *flags) { f.gated = closed }) }

// setReady notes that the present incarnation has called Ready.
func (b *Mailbox) setReady() { b.change(func(f *flags) { f.ready = true }) }

// Path is the place of the actor in the tree.
func (b *Mailbox) Path() string { return b.pid.GetId() }

// Kind is the kind of the actor.
func (b *Mailbox) Kind() string { return b.spec.Kind }

// restart posts the order for the next incarnation and returns its number. Only the supervisor may call it. An actor that is told to stop
// ignores it (pitfall P4).
func (b *Mailbox) restart() uint64 {
	b.mu.Lock()
	b.numbers.planned++
	incarnation := b.numbers.planned
	b.mu.Unlock()
	b.PostSystemMessage(&restartOrder{incarnation})
	return incarnation
}

// plan is the incarnation that lives after all restarts that have been posted.
func (b *Mailbox) plan() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.numbers.planned
}

// stop posts a stop; it overtakes all user messages.
func (b *Mailbox) stop() { b.PostSystemMessage(&actor.Stop{}) }

// postFailure makes the actor fail, unless l is set and over by then.
func (b *Mailbox) postFailure(l *life, f *Failure) { b.PostSystemMessage(&failOrder{l, f}) }

// begin starts the books of the next incarnation and returns its number.
func (b *Mailbox) begin(l *life) uint64 {
	now := b.sys.nanos()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life = l
	b.numbers.present = b.numbers.target
	b.flags.restarting, b.flags.started, b.flags.ready = false, false, false
	b.stats.born = now
	if b.trouble != nil {
		b.trouble.condition = ""
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

// finish ends the mailbox when its actor has stopped: what still waits is counted and reported (pitfall P7), and the path becomes free.
func (b *Mailbox) finish() {
	b.mu.Lock()
	b.flags.stopped, b.flags.stopping = true, true
	var rest []any
	for b.user.len() > 0 {
		rest = append(rest, b.user.pop(b.sys.lists).msg)
	}
	b.stats.dropped += uint64(len(rest))
	b.mu.Unlock()
	for _, msg := range rest {
		b.sys.undeliverable(b.Path(), msg, "discarded on stop")
	}
	b.sys.unregister(b)
}

// lastIncarnation is the number of the latest incarnation, and whether it must not be used again by a next actor of the name.
func (b *Mailbox) lastIncarnation() (number uint64, fixed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.numbers.present, b.numbers.planned), b.flags.barrier
}

// coalesceKey is the key of a latest-wins message, "" for any other. Timers and envelopes are looked through.
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
