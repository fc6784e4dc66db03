package link

import "go.fd.io/govpp/api"

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
