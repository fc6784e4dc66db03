package routes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// OpResult is the outcome of one operation, with the source that Apply has found, as State.Record
// needs it.
type OpResult = batch.Result[Op]

// Apply carries out the operations, the registrations first, then the others in their order in one
// pipelined batch, and returns one result per operation. A failed operation does not stop the later
// ones. Apply reads the sources of VPP before it sends anything: it does not register an existing
// source again, and sends no route with another source than its operation, because a route with an
// unregistered id can crash VPP.
func Apply(ctx context.Context, c link.Caller, ops []Op) []OpResult {
	results := make([]OpResult, len(ops))
	for i, op := range ops {
		results[i] = OpResult{Op: op, Outcome: batch.Outcome{Err: op.Check()}}
	}
	if open(results) == 0 {
		return results
	}
	found, err := register(ctx, c, results)
	if err != nil {
		for i := range results {
			r := &results[i]
			if r.Unknown = r.Unknown || r.Messages > 0; r.Messages > 0 {
				r.Fail(err) // VPP may have registered the source under an id that is unknown here
			} else {
				r.Fail(fmt.Errorf("%w: %w", link.ErrNotSent, err))
			}
		}
		return results
	}
	withhold(ctx, c, found, results)
	batch.Send(ctx, c, results, func(i int) []api.Message {
		if !resolve(&results[i], found) {
			return nil
		}
		return []api.Message{Message(results[i].Op)}
	}, add)
	return results
}

// withhold fails the routes of external addresses to which something else leads.
func withhold(ctx context.Context, c link.Caller, found sources, results []OpResult) {
	var at []int
	var external []netip.Prefix
	for i := range results {
		if r := &results[i]; r.Op.Verb == Add && r.Op.External && r.Err == nil {
			at, external = append(at, i), append(external, r.Op.Prefix)
		}
	}
	covered, err := readCovered(ctx, c, found, external)
	for n, i := range at {
		r := &results[i]
		if err != nil {
			r.Fail(fmt.Errorf("%w: %w", link.ErrNotSent, err))
		} else if by, is := covered[external[n]]; is {
			r.Op.By = by
			r.Fail(ErrCovered)
		}
	}
}

// open counts the operations that have no error.
func open(results []OpResult) int {
	n := 0
	for i := range results {
		if results[i].Err == nil {
			n++
		}
	}
	return n
}

// register reads our sources and registers ours if it is missing, once: VPP assigns a second id to
// a name that is registered twice. It returns the sources that VPP has afterwards.
func register(ctx context.Context, c link.Caller, results []OpResult) (sources, error) {
	found, err := readSources(ctx, c)
	if err != nil {
		return sources{}, err
	}
	at := slices.IndexFunc(results, func(r OpResult) bool { return r.Op.Verb == Register && r.Err == nil })
	if at < 0 || found.current != noSource {
		return found, nil
	}
	r := &results[at]
	if add(r, batch.Do(ctx, c, []api.Message{Message(r.Op)})[0]); r.Messages == 0 {
		return found, nil
	}
	return readSources(ctx, c)
}

// resolve fills in the source of an operation and reports whether a message has to be sent.
func resolve(r *OpResult, found sources) bool {
	op := &r.Op
	if op.Verb == Register {
		if op.Source = found.current; op.Source == noSource {
			r.Fail(ErrExhausted)
		}
		return false
	}
	current, known := op.Source, found.ours(op.Source)
	if op.Verb == Add {
		current = found.current
		known = current != noSource && (op.Source == noSource || op.Source == current)
	}
	if !known {
		r.Fail(ErrSource)
		r.Unknown = true
		return false
	}
	op.Source = current
	return true
}

// add enters the answer to the message of the operation.
func add(r *OpResult, answer link.Result) {
	r.Add(unsupported(answer.Err), func(retval int32) (error, bool) { return meaningOf(r.Op.Verb, retval), false })
}
