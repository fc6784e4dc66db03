package live

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Phases of a Panic.
const (
	PhaseBefore = "before" // the message is lost
	PhaseAfter  = "after"  // the effects of the message stay
	PhaseStart  = "start"
	PhaseStop   = "stop"
)

// Limits of a single fault.
const (
	// DefaultFor is how long a fault lasts by default.
	DefaultFor = 30 * time.Second
	// MostFor is the longest that a fault may last.
	MostFor = time.Hour
	// MostDelay is the longest delay of a message.
	MostDelay = time.Minute
	// MostTimes is how often a Panic may strike.
	MostTimes = 100
)

// Parameter is one entry of the table of the fields of Fault that only some kinds read.
type Parameter struct {
	// Name is the field in JSON and in a plan, and the flag of the command.
	Name string
	// Help is one line for the flag.
	Help string
	// Values are all that are allowed; nil = any within the limits.
	Values []string
	// Field returns a pointer to the value in a fault: a *string, *int, *float64 or *Duration.
	// The zero value stands for the default.
	Field func(*Fault) any

	// absent is the error of a fault without a value; "" = the parameter has a default.
	absent string
	// wrong says why a value is refused; "" = it is not.
	wrong func(*Fault) string
	// complete sets the default; nil = the zero value stays.
	complete func(*Fault)
	// text describes a value in one line about the fault.
	text func(*Fault) string
}

// parameters is the table of parameters, in the order in which they describe a fault.
var parameters = []Parameter{
	{
		Name: "phase", Help: "when the actor fails, around a message or in its start or stop",
		Values:   []string{PhaseBefore, PhaseAfter, PhaseStart, PhaseStop},
		Field:    func(f *Fault) any { return &f.Phase },
		complete: func(f *Fault) { f.Phase = PhaseBefore },
		text:     func(f *Fault) string { return " " + f.Phase },
	},
	{
		Name: "message", Help: "type of the messages that suffer, for example ServiceSpec; all types by default",
		Field: func(f *Fault) any { return &f.Message },
		wrong: func(f *Fault) string {
			if f.Phase == PhaseStart || f.Phase == PhaseStop {
				return fmt.Sprintf("means nothing in the phase %q: there is no message", f.Phase)
			}
			return ""
		},
		text: func(f *Fault) string { return " " + f.Message },
	},
	{
		Name: "by", Help: "delay of each message, up to " + MostDelay.String() + "; required",
		Field:  func(f *Fault) any { return &f.By },
		absent: "is required: how late the messages come, for example 500ms",
		wrong:  func(f *Fault) string { return span(f.By, MostDelay) },
		text:   func(f *Fault) string { return " by " + f.By.String() },
	},
	{
		Name: "rate", Help: "share of the messages that suffer, above 0 and up to 1",
		Field: func(f *Fault) any { return &f.Rate },
		wrong: func(f *Fault) string {
			if f.Rate > 0 && f.Rate <= 1 { // false for NaN
				return ""
			}
			return fmt.Sprintf("%v is not above 0 and up to 1", f.Rate)
		},
		complete: func(f *Fault) { f.Rate = 1 },
		text: func(f *Fault) string {
			if f.Rate == 1 {
				return ""
			}
			return fmt.Sprintf(", rate %g", f.Rate)
		},
	},
	{
		Name: "times", Help: fmt.Sprintf("number of failures, up to %d", MostTimes),
		Field: func(f *Fault) any { return &f.Times },
		wrong: func(f *Fault) string {
			if f.Times > 0 && f.Times <= MostTimes {
				return ""
			}
			return fmt.Sprintf("%d is not from 1 to %d", f.Times, MostTimes)
		},
		complete: func(f *Fault) { f.Times = 1 },
		text: func(f *Fault) string {
			if f.Times == 1 {
				return ""
			}
			return fmt.Sprintf(", %d times", f.Times)
		},
	},
	{
		Name: "for", Help: "longest duration of the fault, up to " + MostFor.String(),
		Field:    func(f *Fault) any { return &f.For },
		wrong:    func(f *Fault) string { return span(f.For, MostFor) },
		complete: func(f *Fault) { f.For = Duration(DefaultFor) },
		text:     func(f *Fault) string { return ", for " + f.For.String() },
	},
}

// Parameters returns the table of parameters in its order.
func Parameters() []Parameter { return slices.Clone(parameters) }

// given reports whether a fault has a value that is not the zero value.
func (p *Parameter) given(f *Fault) bool { return !reflect.ValueOf(p.Field(f)).Elem().IsZero() }

// problem says why the value in a fault is refused; "" = it is not.
func (p *Parameter) problem(f *Fault, d *Definition) string {
	switch given := p.given(f); {
	case given && !d.Has(p.Name):
		return fmt.Sprintf("means nothing for %s", d.Kind)
	case !given && d.Has(p.Name):
		return p.absent
	case !given:
		return ""
	}
	if len(p.Values) > 0 {
		if value := *p.Field(f).(*string); !slices.Contains(p.Values, value) {
			return fmt.Sprintf("%q is not one of %s", value, strings.Join(p.Values, ", "))
		}
	}
	if p.wrong == nil {
		return ""
	}
	return p.wrong(f)
}

// span says why a duration is refused; "" = it is not.
func span(d Duration, most time.Duration) string {
	if d > 0 && d <= Duration(most) {
		return ""
	}
	return fmt.Sprintf("%v is not above 0 and up to %v", d, most)
}
