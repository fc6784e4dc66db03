package link

import "errors"

// ErrSkipped means that a request was not sent because another one for the same object was refused.
var ErrSkipped = errors.New("skipped with its object")

// sentinel is an error of its own that is matched by the sentinel of its class as well.
type sentinel struct {
	text  string
	class error
}

// Error is the text.
func (s *sentinel) Error() string { return s.text }

// Unwrap returns the class.
func (s *sentinel) Unwrap() error { return s.class }

// Sentinel returns an error with this text, for errors.Is, that ErrStale, ErrDisabled, ErrUnsafe or ErrSkipped matches as well.
func Sentinel(text string, class error) error { return &sentinel{text, class} }
