package runtime

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// incarnation is what an actor owns between two restarts beyond its Behaviour, and whether it is
// over. Timers and goroutines hold the incarnation that they belong to, so nothing of a failed one
// reaches its successor.
type incarnation struct {
	box    *Mailbox
	number uint64
	over   atomic.Bool // set in the actor's goroutine; never reset

	mu     sync.Mutex // guards the following
	timers *timer     // pending ones, doubly linked
	ctx    context.Context
	cancel context.CancelFunc // nil until the first goroutine
}

// timer is a message of an incarnation to itself, by Context.After or at once by Post. It is itself
// what is posted, so that a cancel and the end of the incarnation also reach it inside the mailbox.
type timer struct {
	owner     *incarnation
	msg       any
	cancelled atomic.Bool

	linked     bool // pending; guarded by owner.mu like the following
	prev, next *timer
	clock      Timer
}

// after posts msg to the actor in d unless the incarnation is over by then.
func (inc *incarnation) after(d time.Duration, msg any) (cancel func()) {
	t := &timer{owner: inc, msg: msg}
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if inc.over.Load() {
		return func() {}
	}
	// In front, because the order of the list does not matter.
	t.linked, t.next = true, inc.timers
	if t.next != nil {
		t.next.prev = t
	}
	inc.timers = t
	// under the lock, so that fire finds the timer linked
	t.clock = inc.box.sys.clock.AfterFunc(d, t.fire)
	return t.cancel
}

// fire posts the timer unless a cancel or the end of the incarnation was faster.
func (t *timer) fire() {
	if t.unlink() {
		t.post()
	}
}

// cancel sets the flag first, so that the mailbox drops a timer that has fired already.
func (t *timer) cancel() {
	t.cancelled.Store(true)
	if t.unlink() {
		t.clock.Stop()
	}
}

// unlink reports whether the timer was pending.
func (t *timer) unlink() bool {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	if !t.linked {
		return false
	}
	t.linked = false
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		t.owner.timers = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
	return true
}

// post puts the message into the mailbox, which drops it when its turn comes after the end of the
// incarnation.
func (t *timer) post() {
	if !t.owner.over.Load() {
		t.owner.box.post(t)
	}
}

// post is a timer that is due at once.
func (inc *incarnation) post(msg any) { (&timer{owner: inc, msg: msg}).post() }

// context ends with the incarnation. It is made on demand, because most actors own no goroutine.
func (inc *incarnation) context() context.Context {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if inc.ctx == nil {
		inc.ctx, inc.cancel = context.WithCancel(inc.box.sys.background)
		if inc.over.Load() { // Go was called after the end, for example in Stop
			inc.cancel()
		}
	}
	return inc.ctx
}

// end cancels everything that the incarnation owns. It may be called again.
func (inc *incarnation) end() {
	inc.over.Store(true)
	inc.mu.Lock()
	pending, cancel := inc.timers, inc.cancel
	inc.timers = nil
	for t := pending; t != nil; t = t.next {
		t.linked = false
	}
	inc.mu.Unlock()
	for t := pending; t != nil; t = t.next {
		t.clock.Stop()
	}
	if cancel != nil {
		cancel()
	}
}

// routine is one running function of Context.Go. System.Shutdown waits for it.
type routine struct {
	actor, name string
}

// run starts a goroutine that belongs to the incarnation. A panic in it fails the actor unless the
// incarnation is over.
func (inc *incarnation) run(name string, fn func(context.Context)) {
	sys := inc.box.sys
	start := sys.starter(inc.box.Path(), name)
	ctx := inc.context()
	r := &routine{actor: inc.box.Path(), name: name}
	sys.routineStarts(r)
	start(func() {
		defer sys.routineEnds(r)
		defer func() {
			if reason := recover(); reason != nil {
				inc.box.postFailure(inc, newFailure(reason, "goroutine "+name, debug.Stack()))
			}
		}()
		fn(ctx)
	})
}

// starter is how a function of Context.Go is started here. It panics where that is not allowed,
// which fails the actor.
func (s *System) starter(path, name string) func(run func()) {
	switch {
	case s.options.Go != nil:
		return func(run func()) { s.options.Go(path, name, run) }
	case s.options.Scheduler != nil:
		panic(fmt.Errorf("%s starts %s: %w", path, name, ErrNoGoroutines))
	default:
		return func(run func()) { go run() }
	}
}
