package config

import (
	"reflect"
	"strings"
	"time"
)

// field is one leaf or section of the configuration with its path and its tags.
type field struct {
	// path is the dotted path in a file, for example "vpp.apiSocket".
	path string
	// name is the last part of path.
	name string
	// owner is the name of the Go struct of the field, goName the name of the field in it; together
	// they find the comment.
	owner  string
	goName string
	tag    reflect.StructTag
	// index is the index of the value in an Agent, for reflect.Value.FieldByIndex.
	index []int
	typ   reflect.Type
}

// section reports whether the field holds further fields.
func (f field) section() bool { return f.typ.Kind() == reflect.Struct }

// depth is 0 for a field at the top of the document.
func (f field) depth() int { return strings.Count(f.path, ".") }

// value returns the field's value in an Agent.
func (f field) value(a *Agent) reflect.Value { return reflect.ValueOf(a).Elem().FieldByIndex(f.index) }

// schema returns every field of the configuration in the order of the document, sections before
// their fields.
func schema() []field { return appendFields(nil, reflect.TypeFor[Agent](), "", nil) }

// appendFields walks a struct in the order of its fields, which is the order of the document.
func appendFields(to []field, t reflect.Type, prefix string, index []int) []field {
	for i := range t.NumField() {
		sf := t.Field(i)
		name := sf.Tag.Get("json")
		f := field{
			path: prefix + name, name: name, owner: t.Name(), goName: sf.Name, tag: sf.Tag,
			index: append(append([]int(nil), index...), i), typ: sf.Type,
		}
		to = append(to, f)
		if f.section() {
			to = appendFields(to, sf.Type, f.path+".", f.index)
		}
	}
	return to
}

// typeName is the name of the field's type in the documentation.
func (f field) typeName() string {
	switch {
	case f.section():
		return "object"
	case f.typ == reflect.TypeFor[Duration]():
		return "duration"
	case f.typ == reflect.TypeFor[OneOrMore]():
		return "string or list of strings"
	case f.typ.Kind() == reflect.Slice:
		return "list of strings"
	case f.typ.Kind() == reflect.Bool:
		return "true or false"
	case f.typ.Kind() == reflect.Int:
		return "number"
	default:
		return "string"
	}
}

// Duration is a time.Duration that is written as text, "5s" or "1m30s", in configuration files.
type Duration time.Duration

// Duration returns the duration as the standard library's type.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String returns the text without trailing zero units: "1m" instead of "1m0s".
func (d Duration) String() string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(text) - len(zero); n > 0 && text[n:] == zero {
			text = text[:n+1]
		}
	}
	return text
}

// MarshalText satisfies encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText satisfies encoding.TextUnmarshaler. A number without a unit is an error.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// seconds is the duration in the unit of VPP's API; Validate keeps it in range.
func (d Duration) seconds() uint32 { return uint32(time.Duration(d) / time.Second) }
