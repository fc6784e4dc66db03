package bootstrap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// errUsage matches errors about a wrong command line, with exit code 2.
var errUsage = errors.New("usage")

// usageError is an error about the command line. Its text describes the expected form.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func (*usageError) Is(target error) bool { return target == errUsage }

// usagef makes a usage error.
func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// loggedError is an error that is already in the log, so it is not printed again.
type loggedError struct{ error }

// isUsage reports whether the exit code of an error is 2.
func isUsage(err error) bool { return errors.Is(err, errUsage) }

// objectErrors are errors of input objects, one line each: "file: Kind namespace/name: field:
// message".
type objectErrors []*messages.ObjectError

func (e objectErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = objectErrorText(one)
	}
	return strings.Join(lines, "\n")
}

// objectErrorText joins the parts of one error that are not empty.
func objectErrorText(e *messages.ObjectError) string {
	parts := make([]string, 0, 4)
	for _, part := range []string{e.GetSource(), strings.TrimSpace(e.GetKind() + " " + e.GetObject()), e.GetField(), e.GetMessage()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ": "), "\n", " ")
}
