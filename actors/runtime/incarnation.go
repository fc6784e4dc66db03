package runtime

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// life is one incarnation: what it owns beyond its Behaviour, and whether it is over. Timers and goroutines hold the life they belong to,
// so nothing of a dead incarnation reaches its successor.
type life struct {
	box         *Mailbox
	incarnation uint64
	over        atomic.Bool // set in the actor's goroutine; never reset

	mu     sync.Mutex // guards the following
	timers *timer     // pending ones, doubly linked
	ctx    context.Context
	cancel context.CancelFunc // nil until the first goroutine
}

// timer is one call of Context.After. When it is due it is itself what is posted, so that a cancel also reaches it inside the mailbox.
type timer struct {
	life      *life
	msg       any
	cancelled atomic.Bool

	linked     bool // pending; guarded by life.mu like the following
	prev, next *timer
	clock      Timer
}

// after posts msg to the actor in d unless the incarnation is over by then.
func (l *life) after(d time.Duration, msg any) (cancel func()) {
	t := &timer{life: l, msg: msg}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Load() {
		return func() {}
	}
	t.linked, t.next = true, l.timers
	if t.next != nil {
		t.next.prev = t
	}
	l.timers = t
	t.clock = l.box.sys.clock.AfterFunc(d, t.fire) // under the lock, so that fire finds the timer linked
	return t.cancel
}

func (t *timer) fire() {
	if t.unlink() {
		t.life.post(t)
	}
}

func (t *timer) cancel() {
	t.cancelled.Store(true)
	if t.unlink() {
		t.clock.Stop()
	}
}

// unlink reports whether the timer was pending.
func (t *timer) unlink() bool {
	t.life.mu.Lock()
	defer t.life.mu.Unlock()
	if !t.linked {
		return false
	}
	t.linked = false
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		t.life.timers = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
	return true
}

// post puts a message of this incarnation into its own mailbox; it is dropped, now or when its turn comes, once the incarnation is over.
func (l *life) post(msg any) {
	if !l.over.Load() {
		l.box.post(msg, l)
	}
}

// context ends with the incarnation.
func (l *life) context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancel(l.box.sys.background)
		if l.over.Load() {
			l.cancel()
		}
	}
	return l.ctx
}

// end cancels everything that the incarnation owns. It may be called again.
func (l *life) end() {
	l.over.Store(true)
	l.mu.Lock()
	pending, cancel := l.timers, l.cancel
	l.timers = nil
	for t := pending; t != nil; t = t.next {
		t.linked = false
	}
	l.mu.Unlock()
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

// run starts a goroutine that belongs to an incarnation. A panic in it fails the actor if that incarnation still lives.
func (l *life) run(name string, fn func(context.Context)) {
	sys := l.box.sys
	start := sys.starter(l.box.Path(), name)
	ctx := l.context()
	r := &routine{actor: l.box.Path(), name: name}
	sys.routineStarts(r)
	start(func() {
		defer sys.routineEnds(r)
		defer func() {
			if reason := recover(); reason != nil {
				l.box.postFailure(l, newFailure(reason, "goroutine "+name, debug.Stack()))
			}
		}()
		fn(ctx)
	})
}

// starter is how a function of Context.Go is started here. It panics where that is not allowed, which fails the actor.
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
