package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

// ErrInvalid matches every error of this package about the content of a configuration (errors.Is).
var ErrInvalid = errors.New("invalid configuration")

// FieldError is one problem of a configuration.
type FieldError struct {
	// Source is the file or the flag of the value; "" = a default.
	Source string
	strictyaml.Problem
}

// Error satisfies error: "agent.yaml:7: etcd.endpoints[1]: message".
func (e *FieldError) Error() string {
	p := e.Problem
	p.Line = 0
	switch {
	case e.Source != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.Source, e.Line, p.Error())
	case e.Source != "":
		return e.Source + ": " + p.Error()
	}
	return e.Problem.Error()
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

// OrNil returns the errors ordered by line, or a nil error where there are none.
func (e Errors) OrNil() error {
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
