package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Limits and defaults of a plan.
const (
	// DefaultRunFor is the default duration of a drill, MostRunFor the longest one.
	DefaultRunFor = time.Minute
	MostRunFor    = 24 * time.Hour
	// DefaultEvery is the mean pause between two faults, LeastEvery the shortest one.
	DefaultEvery = 10 * time.Second
	LeastEvery   = 200 * time.Millisecond
	// DefaultConverge is the default time that the agent has to be well again after the last
	// fault.
	DefaultConverge = 45 * time.Second
	// MostSteps is the number of faults that a plan may list.
	MostSteps = 200
)

// Plan describes a drill.
type Plan struct {
	// Name of the drill in the audit record.
	Name string `json:"name,omitempty"`
	// Seed decides the random choices of faults, targets and times; 0 = a new one for each run.
	Seed uint64 `json:"seed,omitempty"`
	// For is the time during which faults are injected; 0 = DefaultRunFor.
	For Duration `json:"for,omitempty"`
	// Every is the mean pause between two random faults; each pause is up to 30 % shorter or
	// longer. 0 = DefaultEvery.
	Every Duration `json:"every,omitempty"`
	// BlastRadius is the number of faults that may be active or recovering at the same time, up
	// to MostFaults; 0 = 1.
	BlastRadius int `json:"blastRadius,omitempty"`
	// Converge is the time that the agent has to be well again after the last fault; 0 =
	// DefaultConverge.
	Converge Duration `json:"converge,omitempty"`
	// KeepGoing continues after the violation of an invariant; otherwise the violation ends the
	// drill.
	KeepGoing bool `json:"keepGoing,omitempty"`
	// Faults are the steps to draw from, and the steps for a set time.
	Faults []Step `json:"faults"`
}

// Step is one fault of a plan: against one actor, or against one that the run draws from a kind of
// actors each time.
type Step struct {
	Fault
	// Of is the kind of the actors to draw from, for example "service"; instead of Actor.
	Of string `json:"of,omitempty"`
	// Weight is how often the run draws the step, compared with the others; 0 = 1. It does not
	// apply to a step with At.
	Weight int `json:"weight,omitempty"`
	// At makes the step happen once, that long after the start or as soon as the blast radius
	// allows; 0 = at random times.
	At Duration `json:"at,omitempty"`
}

// mostWeight bounds Weight.
const mostWeight = 1000

// Check reports every field that is invalid, joined; nil if all are valid.
func (p *Plan) Check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(format, args...)})
	}
	for _, one := range []struct {
		field string
		value Duration
		most  time.Duration
	}{{"for", p.For, MostRunFor}, {"every", p.Every, MostRunFor}, {"converge", p.Converge, MostFor}} {
		if one.value < 0 || one.value > Duration(one.most) {
			bad(one.field, "%v is not above 0 and up to %v", one.value, one.most)
		}
	}
	if p.Every > 0 && p.Every < Duration(LeastEvery) {
		bad("every", "%v is shorter than %v", p.Every, LeastEvery)
	}
	if p.BlastRadius < 0 || p.BlastRadius > MostFaults {
		bad("blastRadius", "%d is not from 1 to %d", p.BlastRadius, MostFaults)
	}
	switch {
	case len(p.Faults) == 0:
		bad("faults", "is empty: expected at least one fault")
	case len(p.Faults) > MostSteps:
		bad("faults", "has %d entries, at most %d", len(p.Faults), MostSteps)
	}
	for i := range p.Faults {
		errs = append(errs, p.Faults[i].check(fmt.Sprintf("faults[%d].", i))...)
	}
	return errors.Join(errs...)
}

// check reports every field of a step that is invalid.
func (s *Step) check(prefix string) (errs []error) {
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{prefix + field, fmt.Sprintf(format, args...)})
	}
	f := s.Fault
	actorless := false
	if d := Lookup(f.Kind); d != nil {
		actorless = !d.NeedsActor
	}
	switch {
	case actorless && s.Of != "":
		bad("of", "means nothing for %s", f.Kind)
	case actorless:
	case s.Of != "" && f.Actor != "":
		bad("of", "and actor exclude each other")
	case s.Of == "" && f.Actor == "":
		bad("actor", "is required, or of: a kind of actors to draw from")
	case s.Of != "" && exempt(s.Of) != "":
		bad("of", "%s", exempt(s.Of))
	}
	if why := exempt(f.Actor); why != "" {
		bad("actor", "%s", why)
	}
	if f.Actor == "" && !actorless {
		f.Actor = "?" // the run draws it
	}
	if s.Weight < 0 || s.Weight > mostWeight {
		bad("weight", "%d is not from 1 to %d", s.Weight, mostWeight)
	}
	if s.At < 0 || s.At > Duration(MostRunFor) {
		bad("at", "%v is not above 0 and up to %v", s.At, MostRunFor)
	}
	if s.At > 0 && s.Weight > 0 {
		bad("weight", "means nothing for a fault with a time")
	}
	for _, field := range Fields(f.Check()) {
		errs = append(errs, &FieldError{prefix + field.Field, field.Message})
	}
	return errs
}

// Fields returns the field errors that an error of Check joins.
func Fields(err error) (out []*FieldError) {
	parts := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		parts = joined.Unwrap()
	}
	for _, part := range parts {
		var field *FieldError
		if errors.As(part, &field) {
			out = append(out, field)
		}
	}
	return out
}

// complete sets the defaults of a plan.
func (p Plan) complete() Plan {
	set := func(d *Duration, to time.Duration) {
		if *d == 0 {
			*d = Duration(to)
		}
	}
	set(&p.For, DefaultRunFor)
	set(&p.Every, DefaultEvery)
	set(&p.Converge, DefaultConverge)
	p.BlastRadius = max(p.BlastRadius, 1)
	if p.Seed == 0 {
		p.Seed = rand.Uint64() >> 12 // JSON readers keep 53 bits
	}
	return p
}

// choose draws one of the steps without a time, by weight; nil if there is none.
func (p *Plan) choose(r *rand.Rand) *Step {
	total := 0
	for i := range p.Faults {
		total += p.Faults[i].share()
	}
	if total == 0 {
		return nil
	}
	n := r.IntN(total)
	for i := range p.Faults {
		if n -= p.Faults[i].share(); n < 0 {
			return &p.Faults[i]
		}
	}
	return nil
}

// share is the weight of a step in a draw; steps with a time take no part.
func (s *Step) share() int {
	if s.At > 0 {
		return 0
	}
	return max(s.Weight, 1)
}

// pause is the time until the next fault: Every, up to 30 % shorter or longer.
func (p *Plan) pause(r *rand.Rand) time.Duration {
	return time.Duration(float64(p.Every) * (0.7 + 0.6*r.Float64()))
}
