package bootstrap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// errUsage is matched by errors that mean: the command was called in the wrong way.
var errUsage = errors.New("usage")

// usageError is an error of the caller of a command; its text says what to do instead.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func (*usageError) Is(target error) bool { return target == errUsage }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func isUsage(err error) bool { return errors.Is(err, errUsage) }

// objectErrors are problems of the input, one line each: "file: Kind namespace/name: field: message".
type objectErrors []*messages.ObjectError

func (e objectErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = objectErrorText(one)
	}
	return strings.Join(lines, "\n")
}

// objectErrorText joins what is known of one problem.
func objectErrorText(e *messages.ObjectError) string {
	parts := make([]string, 0, 4)
	for _, part := range []string{e.GetSource(), strings.TrimSpace(e.GetKind() + " " + e.GetObject()), e.GetField(), e.GetMessage()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ": "), "\n", " ")
}
