package runtime

import (
	"fmt"
)

// Phase tells a FaultHook when it is called.
type Phase int

const (
	// Before: the message was taken from the mailbox, the actor has not seen it. A panic loses the message.
	Before Phase = iota
	// After: the actor has handled the message and made all its sends. A panic leaves these effects behind.
	After
)

// FaultHook is called around every user message with the message out of its envelope. It may panic, which fails the actor, and it may send
// messages. It runs in the goroutine of the actor.
type FaultHook func(m *Mailbox, msg any, phase Phase)

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
