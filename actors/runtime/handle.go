package runtime

import (
	"context"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// burst is how many messages one goroutine handles before it offers the processor to others.
const burst = 300

// task is one message that is being handled.
type task struct {
	msg    any // as the invoker gets it
	system bool
	fail   *Failure // set for an injected failure; there is no message then
}

// Scheduler decides when mailboxes work. Without one, protoactor's dispatcher gives each busy
// mailbox a goroutine.
type Scheduler interface {
	// Ready says that the mailbox has work. The scheduler must call Step, never two at a time
	// for one mailbox, until it reports false. Ready is called from any goroutine, may not
	// block and must not call Step itself.
	Ready(m *Mailbox)
}

// schedule hands the mailbox to the Scheduler, or to protoactor's dispatcher.
func (b *Mailbox) schedule() {
	if s := b.sys.options.Scheduler; s != nil {
		s.Ready(b)
		return
	}
	b.sys.dispatcher.Schedule(b.drain)
}

// Step handles one message and reports whether more work remains, in which case it has to be called
// again. It is for a Scheduler only.
func (b *Mailbox) Step() (more bool) { return b.step(nil) }

// step shows the message to observe before it is handled.
func (b *Mailbox) step(observe func(msgType string, system bool)) (more bool) {
	b.mu.Lock()
	t, ok := b.take(b.sys.nanos())
	if !ok {
		b.flags.scheduled = false
		b.mu.Unlock()
		return false
	}
	b.mu.Unlock()
	if observe != nil {
		observe(t.typeName(), t.system)
	}
	failed := b.invoke(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !failed {
		b.handled(b.sys.nanos())
	}
	b.flags.scheduled = b.runnable()
	return b.flags.scheduled
}

// drain is the production loop: one goroutine for as long as there is work. It is step in a loop,
// with half of the locking and of the clock reading.
func (b *Mailbox) drain() {
	done := false
	defer func() {
		if !done { // a handler has ended this goroutine (pitfall P19)
			b.sys.dispatcher.Schedule(b.drain)
		}
	}()
	pprof.SetGoroutineLabels(b.labels()) // goroutines that the actor starts inherit them
	b.mu.Lock()
	now := b.sys.nanos()
	for n := 1; ; n++ {
		t, ok := b.take(now)
		if !ok {
			b.flags.scheduled = false
			b.mu.Unlock()
			break
		}
		b.mu.Unlock()
		failed := b.invoke(t)
		if n%burst == 0 { // an actor that is never idle must not keep its processor
			runtime.Gosched()
		}
		now = b.sys.nanos()
		b.mu.Lock()
		if !failed {
			b.handled(now)
		}
	}
	done = true
}

// labels mark goroutines in profiles with the path of the actor. Only the goroutine that drains the
// mailbox calls it.
func (b *Mailbox) labels() context.Context {
	if b.labelled == nil {
		b.labelled = pprof.WithLabels(context.Background(), pprof.Labels("actor", b.Path()))
	}
	return b.labelled
}

// take removes the next message that may be handled now. System messages for the mailbox itself
// take effect in here. Lock must be held.
func (b *Mailbox) take(now int64) (t task, ok bool) {
	for b.runnable() {
		if b.system.len() > 0 {
			t, ok = b.control(b.system.pop(b.sys.lists).msg)
		} else {
			e := b.user.pop(b.sys.lists)
			t, ok = task{msg: e.msg}, true
			if own, is := e.msg.(*timer); is {
				t.msg, ok = own.msg, !own.cancelled.Load() && !own.owner.over.Load()
			}
			if !ok {
				b.stats.stale++
			}
		}
		if ok {
			_, inner, _ := actor.UnwrapEnvelope(t.msg)
			b.stats.current, b.stats.since = reflect.TypeOf(inner), now
			return t, true
		}
	}
	return task{}, false
}

// control handles a system message that is for the mailbox, and reports whether the actor gets it.
// Lock must be held.
func (b *Mailbox) control(msg any) (t task, forward bool) {
	f := &b.flags
	switch m := msg.(type) {
	case *actor.SuspendMailbox:
		f.suspended = true
		return t, false
	case *actor.ResumeMailbox:
		f.suspended = false
		return t, false
	case *actor.Started:
		// user messages wait for it, because senders may be faster than protoactor's start
		f.awake = true
	case *actor.Stop:
		if f.stopped {
			return t, false
		}
		f.stopping = true
	case *restartRequest:
		return b.controlRestart(m.incarnation)
	case *actor.Restart: // not from this package, but it must keep the numbers right
		b.numbers.planned++
		return b.controlRestart(b.numbers.planned)
	case *inspectRequest:
		return task{msg: m.envelope}, b.inc != nil
	case *failRequest:
		over := b.inc == nil || b.inc.over.Load() || m.inc != nil && m.inc != b.inc
		return task{fail: m.failure, system: true}, !over
	}
	return task{msg: msg, system: true}, true
}

// controlRestart turns the request into protoactor's restart. Two restarts while the children stop
// are one, with the number of the latter, because protoactor makes one incarnation of them too.
// Lock must be held.
func (b *Mailbox) controlRestart(incarnation uint64) (t task, forward bool) {
	f := &b.flags
	if f.stopping { // pitfall P4: protoactor would resurrect it
		return t, false
	}
	b.numbers.target = incarnation
	if f.restarting {
		return t, false
	}
	f.restarting = true
	return task{msg: &actor.Restart{}, system: true}, true
}

// invoke runs the handler of one message. A panic in it fails the actor, counts the message and
// reports true.
func (b *Mailbox) invoke(t task) (failed bool) {
	if t.fail != nil {
		b.failed(t.fail, nil)
		return true
	}
	// Assumed first, because neither a panic nor runtime.Goexit reaches the end.
	failed = true
	defer func() {
		if failed {
			b.failed(t.failure(recover()), t.msg)
		}
	}()
	b.handle(t)
	failed = false
	return failed
}

// handle gives the message to protoactor, which calls the adapter, between the two calls of the
// fault hook.
func (b *Mailbox) handle(t task) {
	faults := b.sys.options.Faults
	switch {
	case t.system:
		b.invoker.InvokeSystemMessage(t.msg)
	case faults == nil:
		b.invoker.InvokeUserMessage(t.msg)
	default:
		_, inner, _ := actor.UnwrapEnvelope(t.msg)
		faults(b, inner, Before)
		b.invoker.InvokeUserMessage(t.msg)
		faults(b, inner, After)
	}
}

// failure describes the end of the handler. It is called while the goroutine panics, so that the
// stack shows where.
func (t task) failure(reason any) *Failure {
	if reason == nil { // not a panic: the handler ends the goroutine
		reason = ErrGoexit
	}
	f := newFailure(reason, t.typeName(), debug.Stack())
	_, inner, _ := actor.UnwrapEnvelope(t.msg) // pitfall P22
	f.generation = generationOf(inner)
	return f
}

// handled counts a message. Lock must be held.
func (b *Mailbox) handled(now int64) {
	s := &b.stats
	s.handled++
	s.busy += now - s.since
	if s.current != nil {
		b.kind.handled(s.current, now-s.since)
	}
	s.last, s.current, s.since = s.current, nil, now
}

// failed counts the message and fails the actor.
func (b *Mailbox) failed(f *Failure, msg any) {
	now := b.sys.nanos()
	b.mu.Lock()
	b.handled(now)
	b.mu.Unlock()
	b.fail(f, msg)
}

// fail ends the incarnation and escalates the failure to the supervisor. It runs in the actor.
func (b *Mailbox) fail(f *Failure, msg any) {
	b.mu.Lock()
	b.remember(f)
	inc := b.inc
	b.mu.Unlock()
	if inc != nil {
		inc.end()
	}
	b.invoker.EscalateFailure(f, msg)
}

// typeName is what a trace and a Failure show.
func (t task) typeName() string {
	if t.fail != nil {
		return "failure"
	}
	return typeName(t.msg)
}

// typeName is the type of a message without its package and type parameters, taken out of its
// envelope or timer.
func typeName(msg any) string {
	if t, ok := msg.(*timer); ok {
		msg = t.msg
	}
	_, inner, _ := actor.UnwrapEnvelope(msg)
	return nameOf(reflect.TypeOf(inner))
}

// nameOf is applied late, when statistics are read: counting keeps the reflect.Type, which costs no
// allocation.
func nameOf(t reflect.Type) string {
	if t == nil {
		return ""
	}
	name, _, _ := strings.Cut(t.String(), "[")
	return name[strings.LastIndexByte(name, '.')+1:]
}
