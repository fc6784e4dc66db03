package external

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInvalid is wrapped by every error of Decode.
var ErrInvalid = errors.New("invalid external configuration")

// FieldError is one fault in a document.
type FieldError struct {
	// Object names the entry: "staticMappings[2] 203.0.113.9:443/TCP"; "" = the document.
	Object string
	// Field is the field of the object, as written in the document; "" = the whole object.
	Field string
	// Message describes the fault.
	Message string
}

// Error returns object, field and message in one line.
func (e *FieldError) Error() string {
	text := e.Message
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Object != "" {
		text = e.Object + ": " + text
	}
	return text
}

// Errors are all faults of one document. It wraps ErrInvalid.
type Errors []*FieldError

// Error returns all of them in one line.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	return fmt.Sprintf("%s: %s", ErrInvalid, strings.Join(texts, "; "))
}

// Unwrap returns ErrInvalid.
func (Errors) Unwrap() error { return ErrInvalid }
