package external

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInvalid is what every error of Decode wraps.
var ErrInvalid = errors.New("invalid external configuration")

// FieldError is one thing that is wrong in a document.
type FieldError struct {
	// Object names the entry: "staticMappings[2] 203.0.113.9:443/TCP"; "" = the document.
	Object string
	// Field is the field of the object, as it stands in the document; "" = all of it.
	Field string
	// Message says what is wrong with it.
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

// Errors is everything that is wrong with one document. It wraps ErrInvalid.
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
