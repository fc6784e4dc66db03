package config

import (
	"errors"
	"reflect"
	"slices"
	"strconv"

	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

// maxSize limits a file, in bytes; a full configuration has 10 KB.
const maxSize = 1 << 20

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
func NewDocument() *Document { return &Document{Agent: Defaults(), flags: map[string]string{}} }

// Decode reads one YAML or JSON document over the defaults; source names it in errors. It reports
// every field that is unknown, duplicate or has a value of the wrong type (Errors). Validate checks
// the values.
func Decode(data []byte, source string) (*Document, error) {
	doc := NewDocument()
	doc.source = source
	var errs Errors
	d := &strictyaml.Decoder{NullKeeps: true}
	doc.lines, errs = Read(data, source, Kind, d, section(reflect.ValueOf(doc.Agent).Elem()))
	return doc, errs.OrNil()
}

// Read reads the only document in data, which has this kind. It returns the lines of its fields by
// their paths, and the problems of the decoder with their source.
func Read(data []byte, source, kind string, d *strictyaml.Decoder, root strictyaml.Value) (lines map[string]int, errs Errors) {
	d.Lines = map[string]int{}
	documents, problem := strictyaml.Parse(data[:min(len(data), maxSize+1)])
	switch {
	case len(data) > maxSize:
		d.Fail(0, "", "is larger than %d bytes", maxSize)
	case problem != nil:
		d.Problems = append(d.Problems, problem)
	case len(documents) == 0:
		d.Fail(0, "", "is empty: expected apiVersion %s, kind %s", APIVersion, kind)
	case len(documents) > 1:
		d.Fail(documents[1].Line, "", "has a second document: only one is expected")
	default:
		d.Read(documents[0].Content[0], "", root)
		for _, want := range []struct{ path, value string }{{"apiVersion", APIVersion}, {"kind", kind}} {
			if d.Lines[want.path] == 0 && !slices.ContainsFunc(d.Problems, func(p *strictyaml.Problem) bool { return p.Path == "" }) {
				d.Fail(0, want.path, "is missing: expected %s", want.value)
			}
		}
	}
	for _, p := range d.Problems {
		errs = append(errs, &FieldError{Source: source, Problem: *p})
	}
	return d.Lines, errs
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
	return append(slices.Clone(a), slices.DeleteFunc(slices.Clone(b), func(e *FieldError) bool { return seen[e.Path] })...).OrNil()
}

// section reads a struct; the json tags of its fields are their names.
func section(to reflect.Value) strictyaml.Value {
	fields := map[string]strictyaml.Value{}
	for i := range to.NumField() {
		fields[to.Type().Field(i).Tag.Get("json")] = value(to.Field(i))
	}
	return strictyaml.Object(fields)
}

// value reads one field.
func value(to reflect.Value) strictyaml.Value {
	if to.Kind() == reflect.Struct {
		return section(to)
	}
	switch to := to.Addr().Interface().(type) {
	case *string:
		return strictyaml.Text(to)
	case *bool:
		return strictyaml.Flag(to)
	case *int:
		return strictyaml.Scalar("a number", func(text string) (ok bool) {
			n, err := strconv.Atoi(text)
			*to = n
			return err == nil
		}, "!!int")
	case *Duration:
		return strictyaml.Duration(to.UnmarshalText)
	case *[]string:
		return strictyaml.List(to, strictyaml.Text)
	case *OneOrMore:
		return to.read
	}
	panic("config: field of an unsupported type: " + to.Type().String())
}

// read reads one string as a list of one; an empty string is an empty list.
func (o *OneOrMore) read(d *strictyaml.Decoder, n *strictyaml.Node, path string) {
	if n.ShortTag() != "!!str" {
		strictyaml.List((*[]string)(o), strictyaml.Text)(d, n, path)
		return
	}
	if *o = (OneOrMore{}); n.Value != "" {
		*o = OneOrMore{n.Value}
		d.Lines[path+"[0]"] = n.Line
	}
}
