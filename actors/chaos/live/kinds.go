package live

import (
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Kind is what a fault does.
type Kind string

// The kinds of faults.
const (
	// Kill fails the present incarnation of an actor once, ahead of the messages in its
	// mailbox.
	Kill Kind = "kill"
	// Panic fails an actor at a chosen point: before or after it handles a message, in its
	// start or in its stop. For the last two the actor is killed first.
	Panic Kind = "panic"
	// Suspend closes the mailbox of an actor: messages wait.
	Suspend Kind = "suspend"
	// Drop loses messages on their way to an actor. A message is lost only with its receiver:
	// the actor fails at the end, as with Delay.
	Drop Kind = "drop"
	// Delay makes messages to an actor arrive late.
	Delay Kind = "delay"
	// CrashLoop fails every incarnation of an actor in its start.
	CrashLoop Kind = "crashloop"
)

// Definition is one entry of the table of fault kinds. Validation, commands, flags, plans, hooks
// and the audit record are derived from it. Entries are read-only.
type Definition struct {
	// Kind is its name: in requests, in plans, and as a command.
	Kind Kind
	// Help is one line without a full stop, for the command.
	Help string
	// NeedsActor is false for a fault that hits no single actor; Fault.Actor must be empty
	// then.
	NeedsActor bool
	// Parameters are the names of the fields of Fault that the kind reads. A kind without "for"
	// is over as soon as it is injected.
	Parameters []string
	// Wait makes the command wait for the outcome by default.
	Wait bool

	// The rest is for Live and Policy. supervisors may suffer the fault as well.
	supervisors bool
	// restarts reports whether the fault begins with a kill of the actor, which counts against
	// the budget of its supervisor; nil = never.
	restarts func(*Fault) bool
	// inject begins the fault and end takes its effect away, both under the lock of Live; nil =
	// nothing to do.
	inject func(*Live, *active) error
	end    func(*Live, *active)
	// over reports whether the fault has ended before its deadline; nil = the deadline ends it.
	over func(*active) bool
	// struck counts what the fault has cost while it lasts; nil = the hooks count.
	struck func(*active) uint64
	// fails reports whether an armed fault fails the actor at this point; nil = never.
	fails func(a *armed, msg any, phase runtime.Phase) bool
	// transmits says what happens to a message that an armed fault hits; nil = nothing.
	transmits func(*armed) (late time.Duration, lost bool)
}

// kinds is the table of fault kinds. A new kind is one more entry; a new parameter is a field of
// Fault and an entry of parameters.
var kinds = []Definition{
	{
		Kind: Kill, Help: "Fail an actor once, as if it had panicked", NeedsActor: true, Wait: true, supervisors: true,
		restarts: always,
		inject:   func(_ *Live, a *active) error { a.struck.Store(1); return nil },
	},
	{
		Kind: Panic, Help: "Let an actor panic before or after a message, in its start or in its stop", NeedsActor: true, supervisors: true,
		Parameters: []string{"phase", "message", "rate", "times", "for"},
		restarts:   func(f *Fault) bool { return f.Phase == PhaseStart || f.Phase == PhaseStop },
		inject:     arm, end: disarm,
		over:  func(a *active) bool { return a.left.Load() <= 0 },
		fails: func(a *armed, msg any, phase runtime.Phase) bool { return phaseName(phase) == a.Phase && a.hits(msg) },
	},
	{
		Kind: Suspend, Help: "Close the mailbox of an actor for a while: messages wait", NeedsActor: true,
		Parameters: []string{"for"},
		inject:     hold, end: release,
		struck: func(a *active) uint64 { return uint64(a.box.UserMessageCount()) },
	},
	{
		Kind: Drop, Help: "Lose messages on their way to an actor, which fails at the end", NeedsActor: true,
		Parameters: []string{"message", "rate", "for"},
		inject:     arm, end: fail,
		transmits: func(*armed) (time.Duration, bool) { return 0, true },
	},
	{
		Kind: Delay, Help: "Make messages to an actor arrive late; it fails after the last one", NeedsActor: true,
		Parameters: []string{"message", "by", "rate", "for"},
		inject:     arm, end: fail,
		transmits: func(a *armed) (time.Duration, bool) { return time.Duration(a.By), false },
	},
	{
		Kind: CrashLoop, Help: "Fail every start of an actor, until it is in quarantine", NeedsActor: true,
		Parameters: []string{"for"},
		restarts:   always,
		inject:     arm, end: disarm,
		fails: func(_ *armed, _ any, phase runtime.Phase) bool { return phase == runtime.Starting },
	},
}

// Definitions returns the table of fault kinds in its order.
func Definitions() []Definition { return slices.Clone(kinds) }

// Lookup finds the definition of a kind, nil if there is none.
func Lookup(kind Kind) *Definition {
	if i := slices.IndexFunc(kinds, func(d Definition) bool { return d.Kind == kind }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// Has reports whether a parameter means something for the kind.
func (d *Definition) Has(parameter string) bool { return slices.Contains(d.Parameters, parameter) }

// Lasts reports whether the fault has a duration.
func (d *Definition) Lasts() bool { return d.Has("for") }

// Defaults returns a fault of the kind with the default of every parameter.
func (d *Definition) Defaults() Fault { return Fault{Kind: d.Kind}.complete() }

// kills reports whether a fault begins with a kill of its actor.
func (d *Definition) kills(f *Fault) bool { return d.restarts != nil && d.restarts(f) }

func kindNames() string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = string(kinds[i].Kind)
	}
	return strings.Join(names, ", ")
}

func always(*Fault) bool { return true }

// arm hands a fault to the hooks.
func arm(l *Live, a *active) error {
	l.arm(a.armed)
	return nil
}

func disarm(l *Live, a *active) { l.disarm(a.armed) }

// fail fails the actor after the last late message. Its next incarnation asks for all that was lost
// or overtaken.
func fail(l *Live, a *active) {
	l.disarm(a.armed)
	l.limiter.allow(a.path, time.Now()) // it counts
	time.AfterFunc(time.Duration(a.By), func() { _ = l.system.Kill(a.path) })
}

// hold closes the mailbox of the actor. It refuses a closed one, because the end of the fault would
// open it for the other fault, too.
func hold(_ *Live, a *active) error {
	if a.box.State().Held {
		return &reasoned{ErrBusy, "its mailbox is suspended already"}
	}
	a.box.Hold()
	return nil
}

func release(_ *Live, a *active) { a.box.Release() }
