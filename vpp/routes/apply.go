package routes

import (
	"context"
	"errors"
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

// Errors of this package, for errors.Is.
var (
	// ErrUnsupported means that this VPP has no API for sources of routes: it is older than the
	// messages fib_source_add, fib_source_dump, ip_route_add_del_v2, ip_route_v2_dump or
	// ip_route_lookup_v2. Nothing was changed, and a retry cannot succeed.
	ErrUnsupported = errors.New("no FIB sources in this VPP")
	// ErrExhausted means that VPP has no source left to register: there are 255, and no message
	// unregisters one.
	ErrExhausted = errors.New("no FIB source left")
	// ErrSource means that our source is not registered any more, or has another id than when
	// the state was read: VPP has restarted. Nothing was sent, because a route of a source that
	// does not exist can crash VPP: read back.
	ErrSource = link.Classified("FIB source has changed", link.ErrStale)
	// ErrCovered means that a route of another owner leads to an external address, so that it
	// gets none of ours. Nothing was sent.
	ErrCovered = errors.New("another route leads there")
	// ErrNoTable means that VPP does not have the routing table (-3).
	ErrNoTable = errors.New("no such table")
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	retNoSuchFIB     = -3
	retNoSuchEntry   = -6
	retUnimplemented = -9
	retInvalidLength = -171
)

// meaningOf classifies a return value other than 0; nil where the goal of the operation is reached
// nevertheless. Deleting a missing route succeeds in VPP 25.10; a version that reports it is
// handled alike.
func meaningOf(verb Verb, retval int32) error {
	switch {
	case retval == retUnimplemented:
		return ErrUnsupported
	case verb == Delete && (retval == retNoSuchEntry || retval == retNoSuchFIB):
		return nil
	case retval == retNoSuchFIB:
		return ErrNoTable
	case retval == retInvalidLength:
		return link.ErrUnsafe
	default:
		return batch.ErrRejected
	}
}
