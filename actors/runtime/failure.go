package runtime

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

const (
	keptFailures = 8        // of each actor, the latest
	maxStack     = 16 << 10 // bytes kept of a stack trace
)

// What was done about a failure: Failure.Decision and messages.Fault.decision.
const (
	decisionRestart    = "restart"    // a new incarnation follows, possibly after a back-off
	decisionQuarantine = "quarantine" // the child was put aside
	decisionEscalate   = "escalate"   // the supervisor itself fails
	decisionFatal      = "fatal"      // Options.OnFatal was called
	decisionStop       = "stop"       // the supervisor goes down and takes the child along
	decisionContained  = "contained"  // a panic in Stop, without consequences
)

// Failure is the end of one incarnation. As an error it is what protoactor is told as the reason.
type Failure struct {
	// At is when it happened.
	At time.Time `json:"at"`
	// Incarnation is the one that failed.
	Incarnation uint64 `json:"incarnation"`
	// Reason is the text of the panic value.
	Reason string `json:"reason"`
	// Message is the type of the message that was being handled, without its envelope; "Started" when Start failed, "goroutine NAME" when
	// the panic was in a goroutine of Context.Go, "" when the failure was injected by Kill.
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

// generationOf is the service generation that a message is about, 0 if it is about none. Only messages to service actors count.
func generationOf(msg any) uint64 {
	switch m := msg.(type) {
	case *messages.ServiceSpec:
		return m.GetGeneration()
	case *messages.RenderAck:
		return m.GetGeneration()
	}
	return 0
}

// report makes a failure of a living actor known: to its mailbox and to everybody that announce tells.
func (s *System) report(box *Mailbox, f *Failure, decision string) {
	box.decided(f, decision)
	s.announce(box.Path(), f, decision)
}

// announce tells the log and Options.OnFault.
func (s *System) announce(path string, f *Failure, decision string) {
	level := slog.LevelWarn
	if decision == decisionEscalate || decision == decisionFatal {
		level = slog.LevelError
	}
	s.log.Log(s.background, level, "actor failed", "actor", path, "err", f.Reason, "decision", decision, "message", f.Message)
	if s.options.OnFault == nil {
		return
	}
	defer func() { // a broken observer must not become a failure of the supervisor (compare pitfall P11)
		if r := recover(); r != nil {
			s.log.Error("fault observer panicked", "actor", path, "err", fmt.Sprint(r))
		}
	}()
	s.options.OnFault(&messages.Fault{
		Actor: path, Incarnation: f.Incarnation, Reason: f.Reason, Stack: f.Stack, Decision: decision, Message: f.Message,
	})
}
