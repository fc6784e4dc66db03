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

// cut returns what an error quotes of a value or of the name of a field. Errors go into logs,
// Events and archives, and the document may contain secrets. Only a short field name, address or
// port is quoted whole.
func cut(value string) string {
	const whole, begin = 24, 4
	if len(value) <= begin {
		return value
	}
	isWord := !strings.ContainsFunc(value, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') })
	isAddress := strings.Trim(value, "0123456789abcdefABCDEF.:/TPUSM[]") == ""
	if len(value) <= whole && (isWord || isAddress) {
		return value
	}
	return strings.ToValidUTF8(value[:begin], "") + "…"
}
