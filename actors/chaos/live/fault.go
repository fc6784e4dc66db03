package live

import (
	"errors"
	"fmt"
	"strings"
	"time"
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

// Fault is a failure of one actor. Fields that mean nothing for its kind are empty; see the tables
// of kinds and parameters.
type Fault struct {
	// Kind is what fails.
	Kind Kind `json:"fault"`
	// Actor that fails: a path ("agent/dataplane/nat44"), its last part ("nat44"), or a service
	// ("default/web").
	Actor string `json:"actor,omitempty"`
	// Phase of a Panic; "" = before.
	Phase string `json:"phase,omitempty"`
	// Message restricts the fault to one type of message, for example "ServiceSpec"; "" = all.
	Message string `json:"message,omitempty"`
	// Rate is the share of the messages that suffer, above 0 and up to 1; 0 = all.
	Rate float64 `json:"rate,omitempty"`
	// Times is how often a Panic strikes, up to MostTimes; 0 = once.
	Times int `json:"times,omitempty"`
	// By is how late a Delay makes a message, up to MostDelay.
	By Duration `json:"by,omitempty"`
	// For is how long the fault lasts at most, up to MostFor; 0 = DefaultFor.
	For Duration `json:"for,omitempty"`
}

// FieldError names an invalid field of a fault or of a plan.
type FieldError struct {
	// Field is its name as in JSON, "faults[2].rate" in a plan.
	Field string
	// Message says what is wrong and what is expected.
	Message string
}

// Error satisfies error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Is makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Check reports every field that is invalid, joined; nil if all are valid. It does not ask whether
// the actor exists.
func (f *Fault) Check() error {
	d := Lookup(f.Kind)
	if d == nil {
		return &FieldError{"fault", fmt.Sprintf("%q is not one of %s", f.Kind, kindNames())}
	}
	var errs []error
	switch {
	case d.NeedsActor && f.Actor == "":
		errs = append(errs, &FieldError{"actor", "is required"})
	case !d.NeedsActor && f.Actor != "":
		errs = append(errs, &FieldError{"actor", fmt.Sprintf("means nothing for %s", f.Kind)})
	}
	for i := range parameters {
		if problem := parameters[i].problem(f, d); problem != "" {
			errs = append(errs, &FieldError{parameters[i].Name, problem})
		}
	}
	return errors.Join(errs...)
}

// complete sets the defaults of a fault whose kind exists.
func (f Fault) complete() Fault {
	d := Lookup(f.Kind)
	for i := range parameters {
		if p := &parameters[i]; d.Has(p.Name) && p.complete != nil && !p.given(&f) {
			p.complete(&f)
		}
	}
	return f
}

// String describes the fault without its actor: "delay RenderAck by 500ms, rate 0.3, for 30s".
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	for i := range parameters {
		if p := &parameters[i]; p.given(&f) {
			b.WriteString(p.text(&f))
		}
	}
	return b.String()
}

// Reasons why Live refuses a fault.
var (
	// ErrInvalid means that a field of the fault or the plan is invalid; see FieldError.
	ErrInvalid = errors.New("invalid")
	// ErrNoActor means that the actor does not exist.
	ErrNoActor = errors.New("no such actor")
	// ErrExempt means that the actor is exempt from the fault.
	ErrExempt = errors.New("exempt")
	// ErrLimit means that too many faults are active, or were injected in a short time.
	ErrLimit = errors.New("limit")
	// ErrBusy means that a run is active, or a fault of the same kind at the same actor.
	ErrBusy = errors.New("busy")
	// ErrClosed means that the agent is stopping.
	ErrClosed = errors.New("closed")
	// errInjected marks every injected failure, to tell it from a real one in the log and the API.
	errInjected = errors.New("injected by chaos")
)
