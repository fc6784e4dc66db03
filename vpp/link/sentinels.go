package link

import "errors"

// What an answer of VPP means for who has sent the request. The packages that send requests wrap them.
var (
	// ErrStale means that VPP holds something else of one object than is believed: it has to be read again.
	ErrStale = errors.New("VPP holds something else")
	// ErrDisabled means that a feature of VPP as a whole is not in the state that is believed: everything has to be read again.
	ErrDisabled = errors.New("feature is not enabled")
	// ErrUnsafe means that a request must not be sent; the same again ends the same way.
	ErrUnsafe = errors.New("unsafe request")
)

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
