package link

import (
	"context"

	"go.fd.io/govpp/api"
)

// Caller sends requests to VPP. Link implements it; planners and appliers of the other packages
// take it as a parameter, so that a test can pass a smaller implementation. Every method may be
// called from any goroutine, unless the Caller is Serial.
type Caller interface {
	// Do sends the requests in order, pipelined, and returns one Result per request, in order.
	// Requests of concurrent calls may be sent between them. The error is not nil only if
	// nothing was sent at all: ErrDown, or the error of ctx; the results say ErrNotSent then.
	// When the connection ends or ctx is done half way, the requests sent so far without an
	// answer have ErrUnknown and the remaining ones ErrNotSent; nothing more of them is sent
	// after Do has returned.
	Do(ctx context.Context, reqs []api.Message) ([]Result, error)

	// Dump sends a request that is answered by any number of details and calls each for every
	// one of them, in VPP's order and in the goroutine of the caller. It is all or nothing:
	// each is called only when the answer is complete, an error means that it was not called at
	// all. Messages that page with a cursor (their names end in _get) are followed to the last
	// page; the request itself is not changed. Every detail is freshly allocated and belongs to
	// the caller.
	Dump(ctx context.Context, req api.Message, each func(api.Message)) error
}

// Serial is implemented by a Caller that belongs to one goroutine: its user must not spread
// requests over several.
type Serial interface {
	Caller
	// Serial does nothing; it marks the type.
	Serial()
}

// Result is the outcome of one request.
type Result struct {
	// Reply is the decoded reply, freshly allocated, or nil when there is none. It is set for a
	// *RetvalError too.
	Reply api.Message
	// Err is nil when VPP replied with retval 0, or with a reply that has no retval. Otherwise
	// it is a *RetvalError or wraps one of ErrUnknown, ErrNotSent, ErrRefused and
	// ErrUnsupported.
	Err error
}
