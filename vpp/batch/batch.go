// Package batch is the part that the appliers of vpp/nat44, vpp/cnat, vpp/routes and vpp/acl share:
// they send the messages of operations in one batch and return an Outcome for each operation. It
// keeps no state, and functions may be called from any goroutine.
package batch

import (
	"context"
	"errors"
	"fmt"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// ErrRejected means that VPP answered with a return value that has no special meaning for the
// operation.
var ErrRejected = errors.New("rejected by VPP")

// Outcome is the outcome of one operation. It belongs to one goroutine.
type Outcome struct {
	// Err is nil where VPP now holds what the operation is for. Otherwise it wraps ErrRejected,
	// a sentinel of the package of the operation, or of vpp/link where VPP has not answered.
	Err error
	// Unknown says that VPP may hold something else than the State: the answer is missing, or
	// contradicts it. The caller must read before the next Diff. It can be set without an
	// error.
	Unknown bool
	// Messages is the number of messages that were handed to VPP; reads are not counted.
	Messages int
}

// Op is an operation. Describe returns it, and why it is carried out, in one line.
type Op interface{ Describe() string }

// Result is the outcome of one operation.
type Result[O Op] struct {
	// Op is the operation, with what VPP or the package has filled in: ids, indices, sources.
	Op O
	Outcome
}

// Fail enters an error, unless there is one already: the first one is the cause.
func (r *Result[O]) Fail(err error) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%s: %w", r.Op.Describe(), err)
	}
}

// Add enters the answer to a message of the operation; meaning is that of Classify.
func (r *Result[O]) Add(answer error, meaning func(retval int32) (error, bool)) {
	r.Count(answer)
	err, unknown := Classify(r.Op, answer, meaning)
	if r.Unknown = r.Unknown || unknown; r.Err == nil {
		r.Err = err
	}
}

// Count counts a message with this result unless it was not handed to VPP; err may be nil.
func (o *Outcome) Count(err error) {
	if !errors.Is(err, link.ErrNotSent) && !errors.Is(err, link.ErrRefused) && !errors.Is(err, link.ErrUnsupported) {
		o.Messages++
	}
}

// Classify says what the error of a message means for its operation: err, nil = the goal of the
// operation is reached, and whether VPP may hold something else than the State. meaning says it for
// a return value.
func Classify(op Op, answer error, meaning func(retval int32) (error, bool)) (err error, unknown bool) {
	if answer == nil {
		return nil, false
	}
	retval, answered := link.Retval(answer)
	if !answered {
		return fmt.Errorf("%s: %w", op.Describe(), answer), errors.Is(answer, link.ErrUnknown)
	}
	if err, unknown = meaning(retval); err != nil {
		err = fmt.Errorf("%s: %w: %w", op.Describe(), err, answer)
	}
	return err, unknown
}

// Name returns the name of the kind of an operation, for texts and metrics.
func Name[V ~uint8](names []string, verb V) string {
	if int(verb) < len(names) && names[verb] != "" {
		return names[verb]
	}
	return fmt.Sprintf("verb-%d", verb)
}

// NotSent enters into the operations without an error that a read before them failed. Nothing was
// changed, so the class of that error must not make their outcome unknown.
func NotSent[O Op](results []Result[O], err error) {
	for i := range results {
		results[i].Fail(fmt.Errorf("%w: %v", link.ErrNotSent, err))
	}
}

// Send sends the messages of the operations without an error in one batch, so that the round trips
// do not depend on their number. answered enters each answer, in the order of the messages.
func Send[O Op](ctx context.Context, c link.Caller, results []Result[O],
	messages func(i int) []api.Message, answered func(*Result[O], link.Result),
) {
	var all []api.Message
	var owners []*Result[O]
	for i := range results {
		if results[i].Err != nil {
			continue
		}
		for _, msg := range messages(i) {
			all, owners = append(all, msg), append(owners, &results[i])
		}
	}
	for i, answer := range Do(ctx, c, all) {
		answered(owners[i], answer)
	}
}

// Do returns one result per request, even when Do of the Caller fails as a whole: then each says
// link.ErrNotSent. Without requests it does nothing.
func Do(ctx context.Context, c link.Caller, reqs []api.Message) []link.Result {
	if len(reqs) == 0 {
		return nil
	}
	results, err := c.Do(ctx, reqs)
	if err != nil {
		results = make([]link.Result, len(reqs))
		for i := range results {
			results[i].Err = fmt.Errorf("%w: %w", link.ErrNotSent, err)
		}
	}
	return results
}
