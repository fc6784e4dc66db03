package runtime

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// PID is the address of an actor.
type PID = actor.PID

// Context is what a Behaviour sees of its actor. It is valid only inside Start, Receive and Stop of
// the value it was given to, on their goroutine. A goroutine of the actor uses the function that
// Post returns, and System.Send for others.
type Context struct {
	ac      actor.Context
	adapter *adapter
	rand    *rand.Rand
	log     *slog.Logger
}

// Self is the PID of the actor. It survives restarts.
func (c *Context) Self() *actor.PID { return c.adapter.inc.box.pid }

// Path is the place of the actor in the tree, for example "agent/world/registry".
func (c *Context) Path() string { return c.adapter.inc.box.Path() }

// Incarnation is the number of this incarnation, from 1. It grows with every restart. The numbers
// of an Ordered child go on growing when its supervisor is restarted. A Dynamic child that was
// released and is ensured anew begins with 1.
func (c *Context) Incarnation() uint64 { return c.adapter.inc.number }

// Sender is the actor that requested the present message, nil if it was sent without one.
func (c *Context) Sender() *actor.PID { return c.ac.Sender() }

// Parent is the supervisor of the actor, nil for a root actor.
func (c *Context) Parent() *actor.PID {
	if parentPath(c.Path()) == "" {
		return nil // protoactor returns its guardian here, which can not receive messages
	}
	return c.ac.Parent()
}

// Send sends a message. It never blocks and never fails; a message to no actor is counted as a dead
// letter. The message must not be modified any more.
func (c *Context) Send(to *actor.PID, msg any) {
	c.counted(to)
	c.adapter.sys.Send(to, msg)
}

// counted counts a message to another actor.
func (c *Context) counted(to *actor.PID) {
	if to == nil {
		return
	}
	if box := c.adapter.sys.lookup(to.GetId()); box != nil {
		c.adapter.inc.box.kind.sent(box.kind)
	}
}

// Request sends a message with this actor as the sender, so that the receiver can Reply.
func (c *Context) Request(to *actor.PID, msg any) {
	c.counted(to)
	c.adapter.sys.Send(to, &actor.MessageEnvelope{Message: msg, Sender: c.Self()})
}

// Reply sends a message to the sender of the present one. Without a sender it is a dead letter.
func (c *Context) Reply(msg any) { c.Send(c.Sender(), msg) }

// PID addresses an actor by its path, whether it exists or not.
func (c *Context) PID(path string) *actor.PID { return c.adapter.sys.PID(path) }

// Now is the time of the system's clock.
func (c *Context) Now() time.Time { return c.adapter.sys.clock.Now() }

// Clock returns Now for the goroutines of this incarnation.
func (c *Context) Clock() func() time.Time { return c.adapter.sys.clock.Now }

// Actors is the number of actors of the system.
func (c *Context) Actors() int {
	s := c.adapter.sys
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.boxes)
}

// After posts msg to the actor itself, d from now. It is not delivered after cancel was called, nor
// after the end of the incarnation.
func (c *Context) After(d time.Duration, msg any) (cancel func()) { return c.adapter.inc.after(d, msg) }

// Go runs fn on a goroutine that the incarnation owns: ctx ends with it, and System.Shutdown waits
// for fn to return. A panic in fn becomes a failure of the actor. fn must not use the Context of
// the actor, only what Post returned.
func (c *Context) Go(name string, fn func(ctx context.Context)) { c.adapter.inc.run(name, fn) }

// Post returns a function for the goroutines of this incarnation: it posts a message to the actor
// itself, and drops it when the incarnation is over. It is safe for concurrent use and never
// blocks.
func (c *Context) Post() func(msg any) { return c.adapter.inc.post }

// Fail fails the actor with err after the present message, as a panic would, but without a stack
// trace.
func (c *Context) Fail(err error) {
	c.adapter.inc.box.postFailure(&c.adapter.inc, newFailure(err, typeName(c.ac.Message()), nil))
}

// Ready tells an Ordered supervisor that this incarnation is able to work: the next sibling may go
// on. A child of Ordered must call it in each incarnation, sooner or later; elsewhere it does no
// harm.
func (c *Context) Ready() {
	c.adapter.inc.box.change(func(f *flags) { f.ready = true })
	if parent := c.Parent(); parent != nil {
		c.Request(parent, &messages.Ready{Incarnation: c.Incarnation()})
	}
}

// Logger is the logger of the system with the path of the actor under "actor".
func (c *Context) Logger() *slog.Logger {
	if c.log == nil {
		c.log = c.adapter.sys.log.With("actor", c.Path())
	}
	return c.log
}

// Rand is a random source of this incarnation. It depends only on Options.Seed, the path and the
// incarnation.
func (c *Context) Rand() *rand.Rand {
	if c.rand == nil {
		// Not from one shared source, whose values would depend on the order in which
		// actors run.
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.Path())) // never fails
		c.rand = rand.New(rand.NewPCG(c.adapter.sys.options.Seed+c.Incarnation(), h.Sum64()))
	}
	return c.rand
}

// escalate fails this supervisor because of a child.
func (c *Context) escalate(f *Failure) {
	c.adapter.inc.box.fail(f, c.ac.Message())
}

// over reports whether the incarnation has failed or goes down.
func (c *Context) over() bool { return c.adapter.down || c.adapter.inc.over.Load() }
