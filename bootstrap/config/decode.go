package config

//lint:file-ignore SA1019 the parser below is a type alias of go.yaml.in/yaml/v3; importing it here avoids one more direct dependency

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Document is a configuration with the origin of its values. Errors of the validation name the
// origin.
type Document struct {
	// Agent is the configuration itself.
	Agent *Agent
	// source names the file.
	source string
	// lines holds the line of every path in the file, list elements included.
	lines map[string]int
	// flags holds the flag that set a path.
	flags map[string]string
}

// NewDocument returns the defaults as a document without a file.
func NewDocument() *Document {
	return &Document{Agent: Defaults(), lines: map[string]int{}, flags: map[string]string{}}
}

// Decode reads one YAML or JSON document over the defaults; source names it in errors. It reports
// every field that is unknown, duplicate or has a value of the wrong type (Errors). Validate checks
// the values.
func Decode(data []byte, source string) (*Document, error) {
	doc := NewDocument()
	doc.source = source
	d := &decoder{doc: doc}
	if root := d.parse(data); root != nil {
		d.object(root, reflect.ValueOf(doc.Agent).Elem(), "")
		d.head()
	}
	return doc, d.errs.orNil()
}

// Load decodes and validates, and returns the errors of both.
func Load(data []byte, source string) (*Document, error) {
	doc, err := Decode(data, source)
	return doc, Join(err, doc.Validate())
}

// Join merges the problems of two steps into one Errors. It leaves out problems of the second step
// about fields that the first step reports.
func Join(first, second error) error {
	var a, b Errors
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	case !errors.As(first, &a) || !errors.As(second, &b):
		return errors.Join(first, second)
	}
	seen := map[string]bool{}
	for _, e := range a {
		seen[e.Path] = true
	}
	return append(slices.Clone(a), slices.DeleteFunc(slices.Clone(b), func(e *FieldError) bool { return seen[e.Path] })...).orNil()
}

// decoder walks a parsed YAML document and the Go type in parallel.
type decoder struct {
	doc  *Document
	errs Errors
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	d.errs = append(d.errs, &FieldError{Source: d.doc.source, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// parse returns the root of the only document in data, nil after an error.
func (d *decoder) parse(data []byte) *yaml.Node {
	root, err := ParseYAML(data, d.doc.source, Kind)
	if err != nil {
		d.errs = append(d.errs, err)
	}
	return root
}

// head checks apiVersion and kind, the only required fields.
func (d *decoder) head() {
	for _, want := range []struct{ path, value string }{{"apiVersion", APIVersion}, {"kind", Kind}} {
		if d.doc.lines[want.path] == 0 {
			d.fail(0, want.path, "is missing: expected %s", want.value)
		}
	}
}

// object sets the fields of a struct from a mapping.
func (d *decoder) object(n *yaml.Node, to reflect.Value, path string) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n.Line, path, "expected an object, found %s", DescribeYAML(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		target, known := fieldByName(to, key.Value)
		switch {
		case !known:
			d.fail(key.Line, at, "unknown field%s", suggestion(key.Value, names(to.Type())))
		case seen[key.Value]:
			d.fail(key.Line, at, "is duplicate")
		default:
			seen[key.Value] = true
			d.doc.lines[at] = key.Line
			d.value(value, target, at)
		}
	}
}

// value sets one field; null keeps the default.
func (d *decoder) value(n *yaml.Node, to reflect.Value, path string) {
	text, isText := to.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n.Line, path, "YAML aliases are not supported")
	case isNull(n):
	case isText:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			d.fail(n.Line, path, "expected a duration with its unit, for example 30s, found %s", DescribeYAML(n))
		} else if err := text.UnmarshalText([]byte(n.Value)); err != nil {
			d.fail(n.Line, path, "%q is not a duration, for example 30s", n.Value)
		}
	case to.Kind() == reflect.Struct:
		d.object(n, to, path)
	case to.Kind() == reflect.Slice:
		d.list(n, to, path)
	default:
		d.scalar(n, to, path)
	}
}

// list replaces a list of strings.
func (d *decoder) list(n *yaml.Node, to reflect.Value, path string) {
	if single, ok := to.Addr().Interface().(*OneOrMore); ok && n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		if *single = (OneOrMore{}); n.Value != "" {
			*single = OneOrMore{n.Value}
			d.doc.lines[path+"[0]"] = n.Line
		}
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n.Line, path, "expected a list, found %s", DescribeYAML(n))
		return
	}
	out := reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		d.doc.lines[at] = item.Line
		if isNull(item) {
			d.fail(item.Line, at, "is empty")
			continue
		}
		d.value(item, out.Index(i), at)
	}
	to.Set(out)
}

// scalar sets a string, a boolean or a number.
func (d *decoder) scalar(n *yaml.Node, to reflect.Value, path string) {
	wrong := func(want string) { d.fail(n.Line, path, "expected %s, found %s", want, DescribeYAML(n)) }
	switch to.Kind() {
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			wrong("a string")
			return
		}
		to.SetString(n.Value)
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			wrong("true or false")
			return
		}
		to.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int:
		v, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
			wrong("a number")
			return
		}
		to.SetInt(int64(v))
	default:
		panic("config: field of an unsupported type: " + path)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldByName finds the field of a struct by its json tag.
func fieldByName(in reflect.Value, name string) (reflect.Value, bool) {
	for i := range in.NumField() {
		if in.Type().Field(i).Tag.Get("json") == name {
			return in.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func names(t reflect.Type) []string {
	all := make([]string, t.NumField())
	for i := range all {
		all[i] = t.Field(i).Tag.Get("json")
	}
	return all
}

// suggestion names a known field that differs in case or in at most two characters, as the end of
// an error; "" = there is none.
func suggestion(got string, known []string) string {
	for _, name := range known {
		if strings.EqualFold(name, got) || distance(strings.ToLower(name), strings.ToLower(got)) <= 2 {
			return fmt.Sprintf("; did you mean %q?", name)
		}
	}
	return ""
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
