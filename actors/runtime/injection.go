package runtime

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Phase is the point at which a FaultHook is called.
type Phase int

const (
	// Before: the message was taken from the mailbox, the actor has not seen it. A panic loses
	// the message.
	Before Phase = iota
	// After: the actor has handled the message and made all its sends. A panic leaves these
	// effects behind.
	After
	// Starting: an incarnation begins, its Behaviour was made and not started; there is no
	// message. A panic fails it.
	Starting
	// Stopping: an incarnation ends, its Stop was not called; there is no message. A panic is
	// contained, and Stop is never called.
	Stopping
)

// FaultHook is called around every user message with the message out of its envelope, and at both
// ends of every incarnation. It may panic, which fails the actor, and it may send messages. It runs
// in the goroutine of the actor.
type FaultHook func(m *Mailbox, msg any, phase Phase)

// NetworkHook decides the fate of a message on its way to an actor: it returns the delays, from
// now, after which copies of the message arrive. One zero is the usual case; no delay loses the
// message. The message is out of its envelope. The hook does not see messages of an actor to
// itself, nor messages to an actor that is still being made. It is called on the goroutine of the
// sender and must not block.
type NetworkHook func(to *Mailbox, msg any) []time.Duration

// fault calls the hook at one end of an incarnation.
func (s *System) fault(b *Mailbox, phase Phase) {
	if hook := s.options.Faults; hook != nil {
		hook(b, nil, phase)
	}
}

// deliver posts a message of another sender, as often and as late as the hook decides. protoactor
// makes an actor known before it registers its mailbox. A message that comes between the two waits
// there. The hook must not see that mailbox, because it has no path yet.
func (b *Mailbox) deliver(msg any) {
	network := b.sys.options.Network
	if network == nil || !b.registered() {
		b.post(msg)
		return
	}
	_, inner, _ := actor.UnwrapEnvelope(msg)
	for _, delay := range network(b, inner) {
		if delay > 0 {
			b.sys.clock.AfterFunc(delay, func() { b.post(msg) })
		} else {
			b.post(msg)
		}
	}
}

// Kill fails the present incarnation of an actor as a panic would: through its mailbox, ahead of
// its user messages, counted as a failure. It has no effect on an actor that has failed already or
// is going down.
func (s *System) Kill(path string) error {
	box := s.lookup(path)
	if box == nil {
		return fmt.Errorf("kill %s: %w", path, ErrNoActor)
	}
	box.postFailure(nil, newFailure(ErrKilled, "", nil))
	return nil
}
