package drill

//lint:file-ignore SA1019 the parser below is a type alias of go.yaml.in/yaml/v3; importing it here avoids one more direct dependency

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// Kind is the kind of a plan. Its apiVersion is config.APIVersion.
const Kind = "ChaosPlan"

// Decode reads a plan, YAML or JSON; source names it in errors. They are config.Errors: one for
// each field that is unknown, duplicate, of the wrong type or invalid.
func Decode(data []byte, source string) (*live.Plan, error) {
	root, err := config.ParseYAML(data, source, Kind)
	if err != nil {
		return nil, config.Errors{err}
	}
	d, plan := &decoder{source: source, lines: map[string]int{}}, &live.Plan{}
	d.object(root, "", d.planFields(plan))
	for field, want := range map[string]string{"apiVersion": config.APIVersion, "kind": Kind} {
		if root.Kind == yaml.MappingNode && d.lines[field] == 0 {
			d.fail(0, field, "is missing: expected %s", want)
		}
	}
	if len(d.errs) == 0 {
		d.check(plan)
	}
	if len(d.errs) == 0 {
		return plan, nil
	}
	slices.SortStableFunc(d.errs, func(a, b *config.FieldError) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Path, b.Path)
	})
	return nil, d.errs
}

// decoder decodes a plan and collects all errors.
type decoder struct {
	source string
	lines  map[string]int // of every field
	errs   config.Errors
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	d.errs = append(d.errs, &config.FieldError{Source: d.source, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// set reads the value of one field at a path.
type set func(n *yaml.Node, path string)

// object reads a mapping by its fields.
func (d *decoder) object(n *yaml.Node, path string, fields map[string]set) {
	if n.Kind != yaml.MappingNode {
		d.fail(n.Line, strings.TrimSuffix(path, "."), "expected an object, found %s", config.DescribeYAML(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := path + key.Value
		read, known := fields[key.Value]
		switch {
		case !known:
			d.fail(key.Line, at, "unknown field")
		case d.lines[at] != 0:
			d.fail(key.Line, at, "is duplicate")
		default:
			d.lines[at] = key.Line
			read(value, at)
		}
	}
}

// planFields are the fields of a plan.
func (d *decoder) planFields(p *live.Plan) map[string]set {
	return map[string]set{
		"apiVersion": d.word(config.APIVersion), "kind": d.word(Kind), "name": d.text(&p.Name), "seed": d.seed(&p.Seed),
		"for": d.duration(&p.For), "every": d.duration(&p.Every), "converge": d.duration(&p.Converge),
		"blastRadius": d.number(&p.BlastRadius), "keepGoing": d.flag(&p.KeepGoing),
		"faults": func(n *yaml.Node, path string) {
			if n.Kind != yaml.SequenceNode {
				d.fail(n.Line, path, "expected a list, found %s", config.DescribeYAML(n))
				return
			}
			p.Faults = make([]live.Step, len(n.Content))
			for i, item := range n.Content {
				at := fmt.Sprintf("%s[%d]", path, i)
				d.lines[at] = item.Line
				d.object(item, at+".", d.stepFields(&p.Faults[i]))
			}
		},
	}
}

// stepFields are the fields of one fault: its own, and every parameter of the table. Whether a
// parameter applies to the kind of fault is validated later.
func (d *decoder) stepFields(s *live.Step) map[string]set {
	fields := map[string]set{
		"fault": d.text((*string)(&s.Fault.Kind)), "actor": d.text(&s.Actor), "of": d.text(&s.Of), "weight": d.number(&s.Weight), "at": d.duration(&s.At),
	}
	for _, p := range live.Parameters() {
		switch to := p.Field(&s.Fault).(type) {
		case *string:
			fields[p.Name] = d.text(to)
		case *int:
			fields[p.Name] = d.number(to)
		case *float64:
			fields[p.Name] = d.share(to)
		case *live.Duration:
			fields[p.Name] = d.duration(to)
		}
	}
	return fields
}

// scalar reads a scalar of one of these YAML types.
func (d *decoder) scalar(what string, take func(text string) bool, tags ...string) set {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.Tag) || !take(n.Value) {
			d.fail(n.Line, path, "expected %s, found %s", what, config.DescribeYAML(n))
		}
	}
}

func (d *decoder) word(want string) set {
	return d.scalar(want, func(text string) bool { return text == want }, "!!str")
}

// text reads a string. An empty one is an error: users write the default by leaving out the field.
func (d *decoder) text(to *string) set {
	return d.scalar("a string", func(text string) bool { *to = text; return text != "" }, "!!str")
}

func (d *decoder) number(to *int) set {
	return d.scalar("a whole number above 0", func(text string) (ok bool) {
		n, err := strconv.Atoi(text)
		*to = n
		return err == nil && n > 0
	}, "!!int")
}

// seed reads a seed. JSON readers keep 53 bits of a number, and a seed must survive them to repeat
// a run.
func (d *decoder) seed(to *uint64) set {
	return d.scalar("a whole number above 0 and below 2^53", func(text string) (ok bool) {
		n, err := strconv.ParseUint(text, 10, 53)
		*to = n
		return err == nil && n > 0
	}, "!!int")
}

func (d *decoder) share(to *float64) set {
	return d.scalar("a number above 0 and up to 1", func(text string) (ok bool) {
		n, err := strconv.ParseFloat(text, 64)
		*to = n
		return err == nil && n > 0 && n <= 1
	}, "!!float", "!!int")
}

func (d *decoder) flag(to *bool) set {
	return d.scalar("true or false", func(text string) bool { *to = strings.EqualFold(text, "true"); return true }, "!!bool")
}

func (d *decoder) duration(to *live.Duration) set {
	return d.scalar("a duration with its unit, for example 30s", func(text string) bool {
		return to.UnmarshalText([]byte(text)) == nil && *to > 0
	}, "!!str")
}

// check validates the plan and adds lines to its errors.
func (d *decoder) check(plan *live.Plan) {
	for _, e := range live.Fields(plan.Check()) {
		line := d.lines[e.Field]
		if entry, _, nested := strings.Cut(e.Field, "."); line == 0 && nested {
			line = d.lines[entry]
		}
		d.fail(line, e.Field, "%s", e.Message)
	}
}
