package link

import (
	"context"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"
)

// call is the state of one Do, or of one page of a Dump, in the connection. connection.mu guards
// its fields, except where noted; once gone is set, the connection does not use it any more and
// everything belongs to the caller.
type call struct {
	// results has one entry per request. An entry starts as errUnsent, becomes errUnanswered
	// right before the request is handed to the transport, and its final value when the reply
	// comes.
	results []Result
	// left counts the requests that were submitted and not answered, plus one while the caller
	// is still submitting.
	left int
	// done is closed when left becomes 0.
	done chan struct{}
	// sent says that at least one request was handed to the transport.
	sent bool
	// gone says that the caller has stopped waiting.
	gone bool

	// details of a dump so far, and their size on the wire.
	details []api.Message
	bytes   int
}

// newCall makes a call of n requests; the caller holds one count of left until it has submitted all
// of them, so that done is not closed early.
func newCall(n int) *call {
	c := &call{results: make([]Result, n), left: 1, done: make(chan struct{})}
	for i := range c.results {
		c.results[i].Err = errUnsent
	}
	return c
}

// settle subtracts n from left and wakes the caller at 0.
func (c *call) settle(n int) {
	c.left -= n
	if c.left == 0 {
		close(c.done)
	}
}

// item is one encoded request on its way to the transport.
type item struct {
	route *route
	data  []byte
	room  int // what it takes of the window, in bytes
	index int
	ends  bool
}

// job is a run of requests of one call. The sender takes whole jobs, so their size bounds the wait
// of other callers.
type job struct {
	call  *call
	items []item
	// together says that the items must not be separated: all are sent, or none.
	together bool
}

// jobSize is the number of requests that a call submits at a time: large enough to make the
// hand-over cheap, small enough to let concurrent calls take turns.
const jobSize = 64

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

// Ask sends one request and returns its reply.
func Ask[R api.Message](ctx context.Context, c Caller, req api.Message) (reply R, err error) {
	results, err := c.Do(ctx, []api.Message{req})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return reply, err
	}
	reply, ok := results[0].Reply.(R)
	if !ok {
		return reply, fmt.Errorf("%w: %s: answered by %T", ErrProtocol, req.GetMessageName(), results[0].Reply)
	}
	return reply, nil
}

// Command returns the output of a command of VPP's command line.
func Command(ctx context.Context, c Caller, text string) (string, error) {
	reply, err := Ask[*vlib.CliInbandReply](ctx, c, &vlib.CliInband{Cmd: text})
	if err != nil {
		return "", err
	}
	return reply.Reply, nil
}

// Each is Caller.Dump for details of one type; others are ignored.
func Each[D api.Message](ctx context.Context, c Caller, req api.Message, each func(D)) error {
	return c.Dump(ctx, req, func(msg api.Message) {
		if d, ok := msg.(D); ok {
			each(d)
		}
	})
}
