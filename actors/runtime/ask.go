package runtime

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// askTimeout is how long Ask waits when its context has no deadline. An actor never takes long for
// a message.
const askTimeout = 200 * time.Millisecond

// answer is the sender of a request of Ask. protoactor's futures have four reproduced defects
// (pitfalls P14 to P16), one of them a data race.
type answer struct {
	got chan any // of capacity one; later answers are dropped
}

var _ actor.Process = (*answer)(nil)

func (a *answer) SendUserMessage(_ *actor.PID, msg any) {
	_, inner, _ := actor.UnwrapEnvelope(msg)
	select {
	case a.got <- inner:
	default:
	}
}

func (a *answer) SendSystemMessage(*actor.PID, any) {}

func (a *answer) Stop(*actor.PID) {}

// Ask sends a request from outside of the actors and waits for the reply, 200 ms if ctx has no
// deadline. It is for HTTP handlers and tests; an actor must not call it, because it blocks. In a
// Sim it must be called on the goroutine of the simulation. The error wraps ErrNoActor or ErrBusy;
// the latter names what the actor is doing.
func (s *System) Ask(ctx context.Context, path string, msg any) (any, error) {
	return s.ask(ctx, path, msg, func(box *Mailbox, e *actor.MessageEnvelope) { box.PostUserMessage(e) })
}

// ask is Ask with a way to post the request.
func (s *System) ask(ctx context.Context, path string, msg any, post func(*Mailbox, *actor.MessageEnvelope)) (any, error) {
	box := s.lookup(path)
	if box == nil {
		return nil, fmt.Errorf("ask %s: %w", path, ErrNoActor)
	}
	timeout := askTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTimeout)
		defer cancel()
	}
	a := &answer{got: make(chan any, 1)}
	// the identifier is new
	pid, _ := s.proto.ProcessRegistry.Add(a, "ask"+s.proto.ProcessRegistry.NextId())
	defer s.proto.ProcessRegistry.Remove(pid)
	post(box, &actor.MessageEnvelope{Message: msg, Sender: pid})
	// The simulation has no goroutine that could handle the request meanwhile.
	if r, ok := s.options.Scheduler.(runner); ok {
		if done, err := r.RunUntil(func() bool { return len(a.got) > 0 }, timeout); !done {
			return nil, box.busy(cmp.Or(err, context.DeadlineExceeded))
		}
		return <-a.got, nil // ctx may have ended: its deadline is in real time
	}
	select {
	case reply := <-a.got:
		return reply, nil
	case <-ctx.Done():
		return nil, box.busy(ctx.Err())
	}
}

// busy explains why an actor does not answer.
func (b *Mailbox) busy(cause error) error {
	state := b.State()
	doing := string(state.State)
	if state.Current != "" {
		doing = fmt.Sprintf("in %s for %v", state.Current, state.CurrentFor)
	}
	return fmt.Errorf("ask %s: %w: %s, %d messages wait: %w", b.Path(), ErrBusy, doing, state.User, cause)
}

// inspect asks an actor for its state. The adapter answers in its place.
type inspect struct{}

// Inspect asks an actor for its state as JSON. An actor whose messages wait, because it is
// suspended or held, answers too; one that is handling a message does not. See Ask for deadline and
// errors.
func (s *System) Inspect(ctx context.Context, path string) (string, error) {
	reply, err := s.ask(ctx, path, inspect{}, (*Mailbox).inspect)
	if err != nil {
		return "", err
	}
	return reply.(string), nil //nolint:forcetypeassert // the adapter answers
}
