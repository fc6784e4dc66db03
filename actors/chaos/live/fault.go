package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is what a fault does.
type Kind string

// The kinds of faults.
const (
	// Kill fails the present incarnation of an actor once, ahead of everything that waits in its mailbox.
	Kill Kind = "kill"
	// Panic fails an actor at a point of its own: before or after it handles a message, at the start or at the end of an incarnation, which
	// it is killed for.
	Panic Kind = "panic"
	// Suspend closes the mailbox of an actor: messages wait.
	Suspend Kind = "suspend"
	// Drop loses messages on their way to an actor.
	Drop Kind = "drop"
	// Delay has messages arrive late.
	Delay Kind = "delay"
	// CrashLoop fails every incarnation of an actor in its start.
	CrashLoop Kind = "crashloop"
)

// Kinds lists all kinds of faults, as they are written.
func Kinds() []Kind { return []Kind{Kill, Panic, Suspend, Drop, Delay, CrashLoop} }

// Phases of a Panic.
const (
	PhaseBefore = "before" // the message is lost
	PhaseAfter  = "after"  // what it has caused stays
	PhaseStart  = "start"
	PhaseStop   = "stop"
)

// Phases lists the phases of a Panic, the default first.
func Phases() []string { return []string{PhaseBefore, PhaseAfter, PhaseStart, PhaseStop} }

// Limits of a single fault.
const (
	// DefaultFor is how long a fault lasts that does not say it.
	DefaultFor = 30 * time.Second
	// MostFor is the longest that a fault may last.
	MostFor = time.Hour
	// MostDelay is the longest that a message may be held up.
	MostDelay = time.Minute
	// MostTimes is how often a Panic may strike.
	MostTimes = 100
)

// Duration is a time.Duration that is written as text, "1m30s".
type Duration time.Duration

// MarshalText satisfies encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText satisfies encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration, for example 30s", text)
	}
	*d = Duration(parsed)
	return nil
}

// String satisfies fmt.Stringer.
func (d Duration) String() string { return time.Duration(d).String() }

// Fault is something that goes wrong with one actor.
type Fault struct {
	// Kind is what goes wrong.
	Kind Kind `json:"fault"`
	// Actor is whom it happens to: a path ("agent/dataplane/nat44"), its last part ("nat44"), or a service ("default/web").
	Actor string `json:"actor,omitempty"`
	// Phase of a Panic; "" = before.
	Phase string `json:"phase,omitempty"`
	// Message restricts Panic, Drop and Delay to one type of message, for example "ServiceSpec"; "" = all.
	Message string `json:"message,omitempty"`
	// Rate is the share of the messages that Panic, Drop and Delay strike, above 0 and up to 1; 0 = all.
	Rate float64 `json:"rate,omitempty"`
	// Times is how often a Panic strikes, up to MostTimes; 0 = once.
	Times int `json:"times,omitempty"`
	// By is how late a Delay makes a message, up to MostDelay.
	By Duration `json:"by,omitempty"`
	// For is how long it lasts at most, up to MostFor; 0 = DefaultFor. A Kill is over at once.
	For Duration `json:"for,omitempty"`
}

// FieldError says which field of a fault or of a plan cannot be.
type FieldError struct {
	// Field is its name as in JSON, "faults[2].rate" in a plan.
	Field string
	// Message says what is wrong and what would be right.
	Message string
}

// Error satisfies error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Is makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Check reports every field that cannot be, joined; nil if all can. Whether there is such an actor is another question.
func (f *Fault) Check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(format, args...)})
	}
	if !slices.Contains(Kinds(), f.Kind) {
		bad("fault", "%q is not one of %s", f.Kind, kindNames())
		return errors.Join(errs...)
	}
	if f.Actor == "" {
		bad("actor", "is required")
	}
	f.checkMeaning(bad)
	f.checkRanges(bad)
	return errors.Join(errs...)
}

// checkMeaning finds fields that say nothing for the kind.
func (f *Fault) checkMeaning(bad func(field, format string, args ...any)) {
	for _, one := range []struct {
		field string
		set   bool
		kinds []Kind
	}{
		{"phase", f.Phase != "", []Kind{Panic}},
		{"times", f.Times != 0, []Kind{Panic}},
		{"message", f.Message != "", []Kind{Panic, Drop, Delay}},
		{"rate", f.Rate != 0, []Kind{Panic, Drop, Delay}},
		{"by", f.By != 0, []Kind{Delay}},
		{"for", f.For != 0, []Kind{Panic, Suspend, Drop, Delay, CrashLoop}},
	} {
		if one.set && !slices.Contains(one.kinds, f.Kind) {
			bad(one.field, "means nothing for %s", f.Kind)
		}
	}
	if f.Kind == Panic && f.Message != "" && (f.Phase == PhaseStart || f.Phase == PhaseStop) {
		bad("message", "means nothing in the phase %q: there is no message", f.Phase)
	}
}

// checkRanges finds values that are too small or too large.
func (f *Fault) checkRanges(bad func(field, format string, args ...any)) {
	if f.Phase != "" && !slices.Contains(Phases(), f.Phase) {
		bad("phase", "%q is not one of %s", f.Phase, strings.Join(Phases(), ", "))
	}
	if !(f.Rate >= 0 && f.Rate <= 1) { // not a number is outside, too
		bad("rate", "%v is not above 0 and up to 1", f.Rate)
	}
	if f.Times < 0 || f.Times > MostTimes {
		bad("times", "%d is not from 1 to %d", f.Times, MostTimes)
	}
	if f.For < 0 || f.For > Duration(MostFor) {
		bad("for", "%v is not above 0 and up to %v", f.For, MostFor)
	}
	switch {
	case f.Kind == Delay && f.By == 0:
		bad("by", "is required: how late the messages come, for example 500ms")
	case f.By < 0 || f.By > Duration(MostDelay):
		bad("by", "%v is not above 0 and up to %v", f.By, MostDelay)
	}
}

// complete fills in what a fault leaves open.
func (f Fault) complete() Fault {
	if f.Kind == Kill {
		return f
	}
	if f.For == 0 {
		f.For = Duration(DefaultFor)
	}
	if f.Kind == Panic {
		if f.Phase == "" {
			f.Phase = PhaseBefore
		}
		f.Times = max(f.Times, 1)
	}
	if f.Rate == 0 && f.Kind != Suspend && f.Kind != CrashLoop {
		f.Rate = 1
	}
	return f
}

// atEnds reports whether a fault strikes at the ends of incarnations, so that there has to be one.
func (f *Fault) atEnds() bool {
	return f.Kind == CrashLoop || f.Phase == PhaseStart || f.Phase == PhaseStop
}

// String describes the fault without its actor: "delay RenderAck by 500ms, rate 0.3, for 30s".
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	if f.Phase != "" {
		b.WriteString(" " + f.Phase)
	}
	if f.Message != "" {
		b.WriteString(" " + f.Message)
	}
	if f.By != 0 {
		b.WriteString(" by " + f.By.String())
	}
	if f.Rate != 0 && f.Rate != 1 {
		fmt.Fprintf(&b, ", rate %g", f.Rate)
	}
	if f.Times > 1 {
		fmt.Fprintf(&b, ", %d times", f.Times)
	}
	if f.For != 0 {
		b.WriteString(", for " + f.For.String())
	}
	return b.String()
}

func kindNames() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
