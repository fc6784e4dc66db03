package consul

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// ownError is an error in the words of this package.
type ownError struct{ error }

// Unwrap satisfies errors.Unwrap.
func (e ownError) Unwrap() error { return e.error }

// own returns an error that quotes nothing of what a server has sent.
func own(format string, args ...any) error { return ownError{fmt.Errorf(format, args...)} }

// harmless returns the error of a request without any words of the server. A reason phrase, a
// header, a body or a certificate may repeat the token, and errors appear in the log and the API.
func harmless(err error) error {
	var (
		mine      ownError
		network   *net.OpError
		wrongType *json.UnmarshalTypeError
		syntax    *json.SyntaxError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &mine):
		return mine
	case errors.As(err, &authority):
		return own("certificate signed by unknown authority")
	case errors.As(err, &name):
		return own("the certificate is for other names")
	case errors.As(err, &invalid):
		return own("the certificate is not valid: reason %d of crypto/x509", invalid.Reason)
	case errors.As(err, &network):
		return ownError{network}
	case errors.As(err, &wrongType):
		return own("%s has the wrong type", wrongType.Field)
	case errors.As(err, &syntax):
		return own("no JSON at byte %d", syntax.Offset)
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF, io.EOF, http.ErrSchemeMismatch} {
		if errors.Is(err, known) {
			return ownError{known}
		}
	}
	return own("the answer is no HTTP that can be read")
}
