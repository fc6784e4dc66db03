package runtime

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Phase tells a FaultHook when it is called.
type Phase int

const (
	// Before: the message was taken from the mailbox, the actor has not seen it. A panic loses the message.
	Before Phase = iota
	// After: the actor has handled the message and made all its sends. A panic leaves these effects behind.
	After
	// Starting: an incarnation begins, its Behaviour was made and not started; there is no message. A panic fails it.
	Starting
	// Stopping: an incarnation ends, its Behaviour was not told; there is no message. A panic is contained, and the Behaviour is never told.
	Stopping
)

// FaultHook is called around every user message with the message out of its envelope, and at both ends of every incarnation. It may panic,
// which fails the actor, and it may send messages. It runs in the goroutine of the actor.
type FaultHook func(m *Mailbox, msg any, phase Phase)

// NetworkHook decides what becomes of a message on its way to an actor: it returns when copies of it arrive, as delays from now. One zero is
// the usual case, nothing loses the message. The message is out of its envelope. It is not asked about what an actor tells itself, nor
// about what reaches an actor that is still being made. It is called on the goroutine of the sender and must not block.
type NetworkHook func(to *Mailbox, msg any) []time.Duration

// Kill fails the present incarnation of an actor as a panic would: through its mailbox, ahead of its user messages, counted as a failure. It
// has no effect on an actor that has failed already or is going down.
func (s *System) Kill(path string) error {
	box := s.lookup(path)
	if box == nil {
		return fmt.Errorf("kill %s: %w", path, ErrNoActor)
	}
	box.postFailure(nil, newFailure(ErrKilled, "", nil))
	return nil
}

// pardon is a user message to a Dynamic supervisor: let this child try again.
type pardon struct{ child *Mailbox }

// Pardon ends the back-off or the quarantine of an actor below a Dynamic supervisor at once, as if its time were over. It has no effect on
// any other actor.
func (s *System) Pardon(path string) error {
	box := s.lookup(path)
	if box == nil {
		return fmt.Errorf("pardon %s: %w", path, ErrNoActor)
	}
	if parent := s.lookup(parentPath(path)); parent != nil {
		s.Send(parent.pid, &pardon{box})
	}
	return nil
}

// fault calls the hook at one end of an incarnation.
func (s *System) fault(b *Mailbox, phase Phase) {
	if hook := s.options.Faults; hook != nil {
		hook(b, nil, phase)
	}
}

// travel posts a message of somebody else, or what the network makes of it. protoactor makes an actor known before it registers its mailbox; a
// message that comes between the two waits there, and nobody may ask whose mailbox it is.
func (b *Mailbox) travel(msg any) {
	network := b.sys.options.Network
	if network == nil || !b.registered() {
		b.post(msg, nil)
		return
	}
	_, inner, _ := actor.UnwrapEnvelope(msg)
	for _, delay := range network(b, inner) {
		if delay > 0 {
			b.sys.clock.AfterFunc(delay, func() { b.post(msg, nil) })
		} else {
			b.post(msg, nil)
		}
	}
}
