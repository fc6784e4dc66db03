package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// maxProblems ends the reading: a file with so many problems is a file of another kind.
const maxProblems = 1000

// Decoder reads values and collects their problems.
type Decoder struct {
	// Budget allows aliases and merges within its limit; nil = they are problems.
	Budget *Budget
	// NullKeeps lets null leave a value as it is; otherwise null is of the wrong type.
	NullKeeps bool
	// Lines receives the line of each field and list element by its path, unless it is nil.
	Lines map[string]int
	// Problems are the problems found so far, at most about 1000.
	Problems []*Problem
}

// Value reads the value at a path from a node that is no alias.
type Value func(d *Decoder, n *Node, path string)

// Sorted returns the problems, ordered by line.
func (d *Decoder) Sorted() []*Problem {
	slices.SortStableFunc(d.Problems, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	return d.Problems
}

// Fail records a problem.
func (d *Decoder) Fail(line int, path, format string, args ...any) {
	d.Problems = append(d.Problems, &Problem{line, path, fmt.Sprintf(format, args...)})
}

// Expected records that a node is not the expected value.
func (d *Decoder) Expected(want string, n *Node, path string) {
	d.Fail(n.Line, path, "expected %s, found %s", want, Describe(n))
}

// Read reads the value at a path; "" is the root of a document.
func (d *Decoder) Read(n *Node, path string, read Value) {
	switch alias := n.Kind == yaml.AliasNode; {
	case d.stopped() != nil:
		return
	case alias && d.Budget == nil:
		d.Fail(n.Line, path, "YAML aliases are not supported")
		return
	case alias:
		n = Resolve(n)
	}
	switch {
	case !d.Budget.take(1):
		d.Fail(n.Line, path, "is too large")
	case !d.NullKeeps || !isNull(n):
		read(d, n, path)
	}
}

// errStopped ends the reading of a mapping.
var errStopped = errors.New("stopped")

// stopped returns errStopped if the rest is not read.
func (d *Decoder) stopped() error {
	if len(d.Problems) >= maxProblems || d.Budget != nil && *d.Budget < 0 {
		return errStopped
	}
	return nil
}

func (d *Decoder) note(path string, line int) {
	if d.Lines != nil {
		d.Lines[path] = line
	}
}

// Object reads a mapping with these fields.
func Object(fields map[string]Value) Value {
	known := func() []string { return slices.Sorted(maps.Keys(fields)) }
	return mapping(func(key string) Value { return fields[key] }, known)
}

// Map reads a mapping with any keys; value returns how the value of a key is read.
func Map(value func(key string) Value) Value { return mapping(value, nil) }

// mapping reads a mapping. field returns nil for an unknown key; known are the other keys.
func mapping(field func(key string) Value, known func() []string) Value {
	return func(d *Decoder, n *Node, path string) {
		if n.Kind != yaml.MappingNode {
			d.Expected("an object", n, path)
			return
		}
		err := d.Budget.members(n, make(map[string]bool, len(n.Content)/2), func(key, value *Node, again bool) error {
			if key.Kind != yaml.ScalarNode {
				d.Fail(key.Line, path, "expected a string as key, found %s", Describe(key))
				return d.stopped()
			}
			at := join(path, key.Value)
			switch read := field(key.Value); {
			case read == nil:
				d.Fail(key.Line, at, "unknown field%s", Suggestion(key.Value, known()))
			case again:
				d.Fail(key.Line, at, "is duplicate")
			default:
				d.note(at, key.Line)
				d.Read(value, at, read)
			}
			return d.stopped()
		})
		if p := (*Problem)(nil); errors.As(err, &p) {
			d.Fail(p.Line, path, "%s", p.Message)
		}
	}
}

// List replaces a list by a list in the document; element returns how one element is read.
func List[T any](to *[]T, element func(*T) Value) Value {
	return func(d *Decoder, n *Node, path string) {
		if n.Kind != yaml.SequenceNode {
			d.Expected("a list", n, path)
			return
		}
		*to = []T{}
		for i, item := range n.Content {
			if d.stopped() != nil {
				return
			}
			at := path + "[" + strconv.Itoa(i) + "]"
			d.note(at, item.Line)
			if isNull(item) {
				d.Fail(item.Line, at, "is empty")
				continue
			}
			var one T
			d.Read(item, at, element(&one))
			*to = append(*to, one)
		}
	}
}

// Scalar reads a scalar of one of these types of YAML, for example "!!int", unless take refuses its
// text. want describes what is expected.
func Scalar(want string, take func(text string) bool, tags ...string) Value {
	return func(d *Decoder, n *Node, path string) {
		if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) || !take(n.Value) {
			d.Expected(want, n, path)
		}
	}
}

// Text reads a string.
func Text(to *string) Value {
	return Scalar("a string", func(text string) bool { *to = text; return true }, "!!str")
}

// Flag reads a boolean.
func Flag(to *bool) Value {
	return Scalar("true or false", func(text string) bool {
		value, err := strconv.ParseBool(text)
		*to = value
		return err == nil
	}, "!!bool")
}

// Duration reads a duration with the method UnmarshalText of its type.
func Duration(unmarshal func(text []byte) error) Value {
	return Scalar("a duration with its unit, for example 30s", func(text string) bool { return unmarshal([]byte(text)) == nil }, "!!str")
}

// join returns the path of a field. A name that would not fit into an error is quoted.
func join(path, name string) string {
	if len(name) > 64 || strconv.Quote(name) != `"`+name+`"` {
		name = quoted(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// Suggestion names the known field that differs least, by case or by at most two characters, as the
// end of an error; "" = there is none.
func Suggestion(got string, known []string) string {
	best, least := "", 3
	for _, name := range known {
		// Of two characters everything could differ.
		if d := distance(strings.ToLower(name), strings.ToLower(got)); d < min(least, len(name)) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the Levenshtein distance of two words; words of more than 40 bytes count as entirely
// different.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
