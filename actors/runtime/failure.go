package runtime

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

const (
	keptFailures = 8        // of each actor, the latest
	maxStack     = 16 << 10 // bytes kept of a stack trace
)

// Decisions of the supervisor about a failure: Failure.Decision and messages.Fault.decision.
const (
	decisionRestart    = "restart"    // a new incarnation follows, possibly after a back-off
	decisionQuarantine = "quarantine" // the child stays suspended
	decisionEscalate   = "escalate"   // the supervisor itself fails
	decisionFatal      = "fatal"      // Options.OnFatal was called
	decisionStop       = "stop"       // the supervisor goes down and takes the child along
	decisionContained  = "contained"  // a panic in Stop, without consequences
)

// Failure is the end of one incarnation. As an error it is the reason that protoactor hands on.
type Failure struct {
	// At is when it happened.
	At time.Time `json:"at"`
	// Incarnation is the one that failed.
	Incarnation uint64 `json:"incarnation"`
	// Reason is the text of the panic value.
	Reason string `json:"reason"`
	// Message is the type of the message that was being handled, without its envelope; "Started"
	// when Start failed, "goroutine NAME" when the panic was in a goroutine of Context.Go, "" when
	// the failure was injected by Kill.
	Message string `json:"message"`
	// Decision is what the supervisor did; "" until it has decided.
	Decision string `json:"decision"`
	// Stack is the stack trace of the panic, cut to 16 KiB.
	Stack string `json:"stack"`

	cause      error  // of errors.Is; nil when the panic value was no error
	generation uint64 // of the service generation that was being handled; 0 = unknown
}

// Error is the reason.
func (f *Failure) Error() string { return f.Reason }

// Unwrap returns the panic value if it was an error.
func (f *Failure) Unwrap() error { return f.cause }

// newFailure describes a panic value.
func newFailure(reason any, message string, stack []byte) *Failure {
	f := &Failure{Message: message, Stack: string(stack[:min(len(stack), maxStack)])}
	if err, ok := reason.(error); ok {
		f.cause = err
	}
	f.Reason = fmt.Sprint(reason)
	return f
}

// generationOf is the service generation that a message is about, 0 if it is about none. Only
// messages to service actors count.
func generationOf(msg any) uint64 {
	switch m := msg.(type) {
	case *messages.ServiceSpec:
		return m.GetGeneration()
	case *messages.RenderAck:
		return m.GetGeneration()
	}
	return 0
}

// report records and announces a failure of a living actor.
func (s *System) report(box *Mailbox, f *Failure, decision string) {
	// Failures may be reading it.
	box.mu.Lock()
	f.Decision = decision
	box.mu.Unlock()
	s.announce(box.Path(), f, decision)
}

// announce writes the log line of a failure and calls Options.OnFault.
func (s *System) announce(path string, f *Failure, decision string) {
	level := slog.LevelWarn
	if decision == decisionEscalate || decision == decisionFatal {
		level = slog.LevelError
	}
	s.log.Log(s.background, level, "actor failed", "actor", path, "err", f.Reason, "decision", decision, "message", f.Message)
	if s.options.OnFault == nil {
		return
	}
	defer func() {
		// a broken observer must not become a failure of the supervisor (compare pitfall P11)
		if r := recover(); r != nil {
			s.log.Error("fault observer panicked", "actor", path, "err", fmt.Sprint(r))
		}
	}()
	s.options.OnFault(&messages.Fault{
		Actor: path, Incarnation: f.Incarnation, Reason: f.Reason, Stack: f.Stack, Decision: decision, Message: f.Message,
	})
}

// failureLog is what only failing actors need.
type failureLog struct {
	latest    []*Failure // oldest first
	condition State      // StateBackoff or StateQuarantined as set by the supervisor, "" otherwise
	until     time.Time  // when the condition ends
}

// log returns the failure log, which actors that never failed do without. Lock must be held.
func (b *Mailbox) log() *failureLog {
	if b.failures == nil {
		b.failures = &failureLog{}
	}
	return b.failures
}

// remember stamps a failure and keeps it among the latest. Lock must be held.
func (b *Mailbox) remember(f *Failure) {
	b.stats.panics++
	f.At, f.Incarnation = b.sys.clock.Now(), b.numbers.present
	l := b.log()
	if len(l.latest) == keptFailures {
		l.latest = slices.Delete(l.latest, 0, 1)
	}
	l.latest = append(l.latest, f)
}

// contained reports a panic in Stop.
func (b *Mailbox) contained(f *Failure) {
	b.mu.Lock()
	b.remember(f)
	b.mu.Unlock()
	b.sys.report(b, f, decisionContained)
}

// mark notes why the supervisor leaves the actor suspended, and until when. The next incarnation
// resets it.
func (b *Mailbox) mark(condition State, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.log()
	l.condition, l.until = condition, until
}

// Failures are the latest failures of the actor, oldest first. They survive restarts, not the end
// of the actor.
func (b *Mailbox) Failures() []Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == nil {
		return nil
	}
	out := make([]Failure, len(b.failures.latest))
	for i, f := range b.failures.latest {
		out[i] = *f
	}
	return out
}

// Phase is the point at which a FaultHook is called.
type Phase int

const (
	// Before: the message was taken from the mailbox, the actor has not seen it. A panic loses the
	// message.
	Before Phase = iota
	// After: the actor has handled the message and made all its sends. A panic leaves these effects
	// behind.
	After
	// Starting: an incarnation begins, its Behaviour was made and not started; there is no message.
	// A panic fails it.
	Starting
	// Stopping: an incarnation ends, its Stop was not called; there is no message. A panic is
	// contained, and Stop is never called.
	Stopping
)

// FaultHook is called around every user message with the message out of its envelope, and at both
// ends of every incarnation. It may panic, which fails the actor, and it may send messages. It runs
// in the goroutine of the actor.
type FaultHook func(m *Mailbox, msg any, phase Phase)

// NetworkHook decides what becomes of a message on its way to an actor: it returns when copies of
// it arrive, as delays from now. One zero is the usual case, nothing loses the message. The message
// is out of its envelope. The hook does not see what an actor posts to itself, nor what reaches an
// actor that is still being made. It is called on the goroutine of the sender and must not block.
type NetworkHook func(to *Mailbox, msg any) []time.Duration

// fault calls the hook at one end of an incarnation.
func (s *System) fault(b *Mailbox, phase Phase) {
	if hook := s.options.Faults; hook != nil {
		hook(b, nil, phase)
	}
}

// deliver posts a message of another sender, or what the hook makes of it. protoactor makes an
// actor known before it registers its mailbox; a message that comes between the two waits there,
// and the hook must not see that mailbox, which has no path yet.
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

// resetBackoff is a user message to a Dynamic supervisor: restart this child now.
type resetBackoff struct{ child *Mailbox }

// ResetBackoff ends the back-off or the quarantine of an actor below a Dynamic supervisor at once,
// as if its time were over. It has no effect on any other actor.
func (s *System) ResetBackoff(path string) error {
	box := s.lookup(path)
	if box == nil {
		return fmt.Errorf("reset back-off of %s: %w", path, ErrNoActor)
	}
	if parent := s.lookup(parentPath(path)); parent != nil {
		s.Send(parent.pid, &resetBackoff{box})
	}
	return nil
}
