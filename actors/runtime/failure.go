package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

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
	// Message is the type of the message that was being handled, without its envelope.
	// "Started" means that Start failed, "goroutine NAME" that a goroutine of Context.Go
	// panicked, "" that Kill injected the failure.
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
		// a broken observer must not become a failure of the supervisor (compare pitfall
		// P11)
		if r := recover(); r != nil {
			s.log.Error("fault observer panicked", "actor", path, "err", fmt.Sprint(r))
		}
	}()
	s.options.OnFault(&messages.Fault{
		Actor: path, Incarnation: f.Incarnation, Reason: f.Reason, Stack: f.Stack, Decision: decision, Message: f.Message,
	})
}

// failureLog has the fields that only failing actors need.
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

// window counts failures that are not older than a duration.
type window struct {
	at   []time.Time
	left int // so many at the front have left the window
}

// add counts a failure and returns how many lie in the window now. Success does not reset it: an
// actor that works for a moment and fails again would restart in a hot loop.
func (w *window) add(now time.Time, length time.Duration) int {
	w.at = append(w.at, now)
	for now.Sub(w.at[w.left]) >= length {
		w.left++
	}
	if w.left > len(w.at)/2 { // so that fewer are moved than removed
		w.at = append(w.at[:0], w.at[w.left:]...)
		w.left = 0
	}
	return w.count()
}

// publish shows a supervisor's failures in its ActorState.
func (w *window) publish(c *Context, strategy string, p Policy) {
	c.adapter.inc.box.supervises.Store(&supervision{strategy: strategy, budget: p.Budget, window: p.Window, failures: slices.Clone(w.at[w.left:])})
}

// count is how many failures lay in the window when the last one was added.
func (w *window) count() int { return len(w.at) - w.left }

// supervision is how a supervisor treats failures of its children, and when they failed. It is
// never modified.
type supervision struct {
	strategy string
	budget   int
	window   time.Duration
	failures []time.Time
}

// left is how many more failures are tolerated now; -1 = any number.
func (s *supervision) left(now time.Time) int {
	if s.budget < 0 {
		return -1
	}
	left := s.budget
	for _, at := range s.failures {
		if now.Sub(at) < s.window {
			left--
		}
	}
	return max(left, 0)
}

// Sentinel errors of this package, for errors.Is.
var (
	// ErrNoActor says that the path has no actor.
	ErrNoActor = errors.New("no such actor")
	// ErrNameExists says that the name is taken, possibly by an actor that is still stopping.
	ErrNameExists = errors.New("actor name exists")
	// ErrShutdown says that the system is shutting down or has shut down.
	ErrShutdown = errors.New("actor system is shut down")
	// ErrDown says that the supervisor is restarting or stopping and must not start children.
	ErrDown = errors.New("supervisor is going down")
	// ErrBusy says that an actor did not answer in time; the error that wraps it says what the
	// actor is doing.
	ErrBusy = errors.New("actor is busy")
	// ErrKilled is the reason of a failure that Kill made.
	ErrKilled = errors.New("killed")
	// ErrRestart is the reason of a failure that messages.Restart requested.
	ErrRestart = errors.New("restart ordered")
	// ErrGoexit is the reason of a failure by runtime.Goexit inside a handler, for example
	// t.FailNow in a test.
	ErrGoexit = errors.New("handler ended its goroutine")
	// ErrStopped is the reason of the fault of a supervised actor that stopped although its
	// supervisor did not stop it.
	ErrStopped = errors.New("stopped without failing")
	// ErrBudget says that the children of a supervisor failed too often; the supervisor itself
	// fails with it.
	ErrBudget = errors.New("restart budget exceeded")
	// ErrNoGoroutines is the reason of a failure of an actor that calls Go in a simulation that
	// does not allow it.
	ErrNoGoroutines = errors.New("goroutines are not allowed in this simulation")
	// ErrStepLimit says that a simulation took more steps than it may.
	ErrStepLimit = errors.New("simulation exceeded its step limit")
)
