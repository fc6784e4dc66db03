package link

import (
	"errors"
	"fmt"

	"go.fd.io/govpp/api"
)

// Errors of this package, for errors.Is. The error of a Result says whether VPP got the request:
// ErrNotSent, ErrRefused and ErrUnsupported mean that VPP has not seen it, ErrUnknown means that it
// may have been executed.
var (
	// ErrDown means that there is no connection to VPP, so nothing was sent.
	ErrDown = errors.New("no connection to VPP")
	// ErrUnknown means that a request was sent to VPP and its reply did not arrive: the
	// connection ended, the reply could not be decoded or the caller stopped waiting. Whether
	// VPP executed the request is not known; read back before writing again.
	ErrUnknown = errors.New("outcome unknown")
	// ErrNotSent means that a request never left this process, because the connection ended or
	// the caller stopped waiting before it was sent.
	ErrNotSent = errors.New("not sent")
	// ErrRefused means that Check does not let the message reach VPP. It is ErrUnsafe too.
	ErrRefused = Classified("refused before sending", ErrUnsafe)
	// ErrUnsupported means that the connected VPP does not know the message: the plugin is not
	// loaded or it has another API version.
	ErrUnsupported = errors.New("message not supported by this VPP")
	// ErrTooLarge means that the answer to a dump exceeded Config.MaxDumpDetails or
	// Config.MaxDumpBytes. Nothing of it was delivered. The connection is closed when it
	// happens, because only its end makes VPP stop.
	ErrTooLarge = errors.New("dump too large")
	// ErrProtocol means that VPP sent an answer that the API does not allow. The connection is
	// closed when it happens.
	ErrProtocol = errors.New("protocol violation")
	// ErrTimeout means that VPP did not answer within Config.ReplyTimeout, or did not complete
	// a dump within Config.DumpTimeout. The connection is closed when it happens.
	ErrTimeout = errors.New("no answer in time")
	// ErrRunning is returned by a second Run of the same Link.
	ErrRunning = errors.New("link is already running")
)

// Classes of errors. A class tells a caller how to recover without knowing the details: the errors
// of the renderers wrap at most one class (see Classified), so that the caller needs none of their
// names. An error of no class concerns one request only and can be retried later.
var (
	// ErrStale means that VPP holds something else than the caller expects of the object of the
	// request: read that object again before the next attempt.
	ErrStale = errors.New("stale view of an object in VPP")
	// ErrDisabled means that the feature as a whole is not in the state that the caller
	// expects, for example because its plugin was disabled: read everything that belongs to the
	// feature again.
	ErrDisabled = errors.New("feature disabled in VPP")
	// ErrUnsafe means that the request must not be sent. The same request ends the same way
	// every time, so there is nothing to retry.
	ErrUnsafe = errors.New("unsafe for VPP")
	// ErrSkipped means that a request was not sent because another one for the same object was
	// refused.
	ErrSkipped = errors.New("skipped with its object")
)

// Classified returns an error with the given text that errors.Is finds to be class as well; the
// text of the class is not repeated. It is meant for package-level errors.
func Classified(text string, class error) error { return &classified{text: text, class: class} }

// classified is an error of a class.
type classified struct {
	text  string
	class error
}

// Error returns the text alone.
func (e *classified) Error() string { return e.text }

// Unwrap returns the class.
func (e *classified) Unwrap() error { return e.class }

// Lost reports whether an error only says that the connection to VPP has ended, before or after the
// request was sent. Run reports the next connection.
func Lost(err error) bool {
	return errors.Is(err, ErrDown) || errors.Is(err, ErrNotSent) || errors.Is(err, ErrUnknown)
}

// RetvalError is a reply whose return value means failure (vnet/error.h): VPP got the request and
// did not execute it, or only in part where the documentation of the message says so.
type RetvalError struct {
	// Message is the name of the request, for example "nat44_add_del_lb_static_mapping".
	Message string
	// Retval is the field retval of the reply, never 0. Some messages use positive values too.
	Retval int32
}

// Error gives the message, the name that VPP has for the return value and its number.
func (e *RetvalError) Error() string {
	return fmt.Sprintf("%s: %s", e.Message, api.RetvalToVPPApiError(e.Retval))
}

// Is makes errors.Is work with the named return values of GoVPP, for example errors.Is(err,
// api.NO_SUCH_ENTRY).
func (e *RetvalError) Is(target error) bool {
	code, ok := target.(api.VPPApiError)
	return ok && int32(code) == e.Retval
}

// Retval returns the return value that VPP gave, and whether err carries one. A nil error is the
// return value 0.
func Retval(err error) (int32, bool) {
	if err == nil {
		return 0, true
	}
	var failed *RetvalError
	if !errors.As(err, &failed) {
		return 0, false
	}
	return failed.Retval, true
}
