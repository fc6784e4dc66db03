package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid matches every error of this package about the content of a configuration (errors.Is).
var ErrInvalid = errors.New("invalid configuration")

// FieldError is one problem of a configuration.
type FieldError struct {
	// Source is the file or the flag of the value; "" = a default.
	Source string
	// Line in the file, from 1; 0 = unknown.
	Line int
	// Path of the field, for example "etcd.endpoints[1]"; "" = the document as a whole.
	Path string
	// Message describes the error and the expected value.
	Message string
}

// Error satisfies error: "agent.yaml:7: etcd.endpoints[1]: message".
func (e *FieldError) Error() string {
	var b strings.Builder
	switch {
	case e.Source != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.Source, e.Line)
	case e.Source != "":
		fmt.Fprintf(&b, "%s: ", e.Source)
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Errors are all problems of a configuration, in the order of the file.
type Errors []*FieldError

// Error satisfies error, one problem a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e Errors) Unwrap() error { return ErrInvalid }

// orNil returns the errors ordered by line, or a nil error where there are none.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b *FieldError) int { return cmp.Compare(a.Line, b.Line) })
	return e
}

// FromFlags reports whether every problem came from a flag.
func (e Errors) FromFlags() bool {
	return !slices.ContainsFunc(e, func(one *FieldError) bool { return !strings.HasPrefix(one.Source, "--") })
}
