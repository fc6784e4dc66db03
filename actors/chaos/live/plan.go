package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Limits and defaults of a plan.
const (
	// DefaultRunFor is how long a drill lasts that does not say it, MostRunFor the longest one.
	DefaultRunFor = time.Minute
	MostRunFor    = 24 * time.Hour
	// DefaultEvery is the mean pause between two faults, LeastEvery the shortest one.
	DefaultEvery = 10 * time.Second
	LeastEvery   = 200 * time.Millisecond
	// DefaultConverge is how long the agent has to be well again after the last fault.
	DefaultConverge = 45 * time.Second
	// MostSteps is how many faults a plan may list.
	MostSteps = 200
)

// Plan says what a drill does.
type Plan struct {
	// Name is for the audit record.
	Name string `json:"name,omitempty"`
	// Seed decides which faults are chosen, whom they hit and when; 0 = a new one for each run.
	Seed uint64 `json:"seed,omitempty"`
	// For is how long faults are injected; 0 = DefaultRunFor.
	For Duration `json:"for,omitempty"`
	// Every is the mean pause between the faults that are chosen at random, each 30 % shorter to longer; 0 = DefaultEvery.
	Every Duration `json:"every,omitempty"`
	// BlastRadius is how many actors suffer or recover at the same time, up to MostFaults; 0 = 1.
	BlastRadius int `json:"blastRadius,omitempty"`
	// Converge is how long everything may take to be well after the last fault; 0 = DefaultConverge.
	Converge Duration `json:"converge,omitempty"`
	// KeepGoing goes on after an invariant was violated; otherwise all faults end then.
	KeepGoing bool `json:"keepGoing,omitempty"`
	// Faults are what may happen, or what happens at a certain time.
	Faults []Step `json:"faults"`
}

// Step is one fault of a plan: against one actor, or against one that is chosen from a kind each time.
type Step struct {
	Fault
	// Kind of the actors to choose from, for example "service"; instead of Actor.
	Of string `json:"of,omitempty"`
	// Weight is how often the step is chosen, compared with the others; 0 = 1. With At it means nothing.
	Weight int `json:"weight,omitempty"`
	// At has the step happen once, that long after the start, or as soon as the blast radius has room; 0 = at random times.
	At Duration `json:"at,omitempty"`
}

// mostWeight bounds Weight.
const mostWeight = 1000

// Check reports every field that cannot be, joined; nil if all can.
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

// check reports every field of a step that cannot be.
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
		bad("of", "cannot stand beside actor")
	case s.Of == "" && f.Actor == "":
		bad("actor", "is required, or of: a kind of actors to choose from")
	case s.Of != "" && exempt(s.Of) != "":
		bad("of", "%s", exempt(s.Of))
	}
	if why := exempt(f.Actor); why != "" {
		bad("actor", "%s", why)
	}
	if f.Actor == "" && !actorless {
		f.Actor = "?" // chosen later
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
	for _, err := range flatten(f.Check()) {
		var field *FieldError
		if errors.As(err, &field) {
			err = &FieldError{prefix + field.Field, field.Message}
		}
		errs = append(errs, err)
	}
	return errs
}

// Fields returns the field errors that an error of Check joins.
func Fields(err error) []*FieldError {
	var out []*FieldError
	for _, one := range flatten(err) {
		var field *FieldError
		if errors.As(one, &field) {
			out = append(out, field)
		}
	}
	return out
}

// flatten takes a joined error apart.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// complete fills in what a plan leaves open.
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
