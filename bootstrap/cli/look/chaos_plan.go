package look

import (
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

// planKind is the kind of a plan. Its apiVersion is config.APIVersion.
const planKind = "ChaosPlan"

// decodePlan reads a plan, YAML or JSON; source names it in errors. They are config.Errors: one for
// each field that is unknown, duplicate, of the wrong type or invalid.
func decodePlan(data []byte, source string) (*live.Plan, error) {
	plan := &live.Plan{}
	lines, errs := config.Read(data, source, planKind, &strictyaml.Decoder{}, planFields(plan))
	if len(errs) == 0 {
		for _, e := range live.Fields(plan.Check()) {
			line := lines[e.Field]
			if entry, _, nested := strings.Cut(e.Field, "."); line == 0 && nested {
				line = lines[entry]
			}
			errs = append(errs, &config.FieldError{Source: source, Problem: strictyaml.Problem{Line: line, Path: e.Field, Message: e.Message}})
		}
	}
	if err := errs.OrNil(); err != nil {
		return nil, err
	}
	return plan, nil
}

// planFields reads a plan.
func planFields(p *live.Plan) strictyaml.Value {
	return strictyaml.Object(map[string]strictyaml.Value{
		"apiVersion": word(config.APIVersion), "kind": word(planKind), "name": text(&p.Name), "seed": seed(&p.Seed),
		"for": duration(&p.For), "every": duration(&p.Every), "converge": duration(&p.Converge),
		"blastRadius": number(&p.BlastRadius), "keepGoing": strictyaml.Flag(&p.KeepGoing),
		"faults": strictyaml.List(&p.Faults, stepFields),
	})
}

// stepFields reads one fault: its own fields, and every parameter of the table. Whether a parameter
// applies to the kind of fault is validated later.
func stepFields(s *live.Step) strictyaml.Value {
	fields := map[string]strictyaml.Value{
		"fault": text((*string)(&s.Kind)), "actor": text(&s.Actor), "of": text(&s.Of), "weight": number(&s.Weight), "at": duration(&s.At),
	}
	for _, p := range live.Parameters() {
		switch to := p.Field(&s.Fault).(type) {
		case *string:
			fields[p.Name] = text(to)
		case *int:
			fields[p.Name] = number(to)
		case *float64:
			fields[p.Name] = share(to)
		case *live.Duration:
			fields[p.Name] = duration(to)
		}
	}
	return strictyaml.Object(fields)
}

func word(want string) strictyaml.Value {
	return strictyaml.Scalar(want, func(text string) bool { return text == want }, "!!str")
}

// text reads a string. An empty one is an error: users write the default by leaving out the field.
func text(to *string) strictyaml.Value {
	return strictyaml.Scalar("a string", func(text string) bool { *to = text; return text != "" }, "!!str")
}

func number(to *int) strictyaml.Value {
	return strictyaml.Scalar("a whole number above 0", func(text string) (ok bool) {
		n, err := strconv.Atoi(text)
		*to = n
		return err == nil && n > 0
	}, "!!int")
}

// seed reads a seed. JSON readers keep 53 bits of a number, and a seed must survive them to repeat
// a run.
func seed(to *uint64) strictyaml.Value {
	return strictyaml.Scalar("a whole number above 0 and below 2^53", func(text string) (ok bool) {
		n, err := strconv.ParseUint(text, 10, 53)
		*to = n
		return err == nil && n > 0
	}, "!!int")
}

func share(to *float64) strictyaml.Value {
	return strictyaml.Scalar("a number above 0 and up to 1", func(text string) (ok bool) {
		n, err := strconv.ParseFloat(text, 64)
		*to = n
		return err == nil && n > 0 && n <= 1
	}, "!!float", "!!int")
}

func duration(to *live.Duration) strictyaml.Value {
	return strictyaml.Duration(func(text []byte) error {
		if err := to.UnmarshalText(text); err != nil || *to > 0 {
			return err
		}
		return strconv.ErrRange
	})
}
