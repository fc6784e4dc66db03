package nat44

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// OpResult is the outcome of one operation.
type OpResult = batch.Result[Op]

// Apply carries out the operations in their order, in one pipelined batch, and returns one result
// per operation. A failed operation does not stop the later ones: they concern other rows, or Diff
// would return them again. Where Apply refuses one operation of a row before sending
// anything, it does not send the others of this row either, because half of a change could cost the
// row its last backend. Before it deletes rows, Apply reads what else VPP has at their addresses
// (Op.Release); it sends nothing when that read fails.
func Apply(ctx context.Context, c link.Caller, ops []Op) []OpResult {
	results := make([]OpResult, len(ops))
	built := precheck(ops, results)

	found, err := readLeft(ctx, c, results)
	if err != nil {
		batch.NotSent(results, err)
		return results
	}
	var purposes []*Op
	batch.Send(ctx, c, results, func(i int) (msgs []api.Message) {
		if first := found.before(ops[i]); first != nil {
			msgs = found.withdrawal(first.Addr)
			purposes = append(purposes, slices.Repeat([]*Op{first}, len(msgs))...)
		}
		if ops[i].Verb == Withdraw {
			built[i] = found.withdrawal(ops[i].Addr)
		}
		purposes = append(purposes, slices.Repeat([]*Op{&ops[i]}, len(built[i]))...)
		return append(msgs, built[i]...)
	}, func(r *OpResult, answer link.Result) {
		add(r, *purposes[0], answer.Err)
		purposes = purposes[1:]
	})
	doubt(results)
	endOthers(ctx, c, results)
	return results
}

// endOthers ends the sessions of other protocols after interfaces have lost the inside role,
// because these sessions would go on to translate their packets.
func endOthers(ctx context.Context, c link.Caller, results []OpResult) {
	for i := range results {
		if r := &results[i]; r.Op.Verb == DelRoles && r.Op.Roles == Inside && r.Err == nil {
			if err := sessions.EndOthers(ctx, c); err != nil {
				r.Err = fmt.Errorf("%s: %w", r.Op.Describe(), err)
			}
			return // all of them have ended
		}
	}
}

// doubt makes the outcome of changes of slots unknown after a failed change of the same row: they
// were computed for the row as the failed change would have left it.
func doubt(results []OpResult) {
	failed := map[rule.Key]bool{}
	for i := range results {
		r := &results[i]
		r.Unknown = r.Unknown || r.Op.change != nil && failed[r.Op.Key]
		failed[r.Op.Key] = failed[r.Op.Key] || r.Op.change != nil && r.Err != nil
	}
}

// precheck fills in the operation of every result and the error of each one that must not be sent,
// and returns the messages of the operations.
func precheck(ops []Op, results []OpResult) [][]api.Message {
	built := make([][]api.Message, len(ops))
	refused := map[rule.Key]bool{}
	for i, op := range ops {
		results[i].Op = op
		if built[i], results[i].Err = compose(op); results[i].Err != nil {
			refused[op.Key] = refused[op.Key] || op.OnRow()
		}
	}
	if len(refused) == 0 {
		return built
	}
	for i, op := range ops {
		if results[i].Err == nil && op.OnRow() && refused[op.Key] {
			results[i].Err = fmt.Errorf("%s: %w", op.Describe(), link.ErrSkipped)
		}
	}
	return built
}

// compose returns the messages of an operation, or why it must not be sent: the operation and each
// of its messages are checked.
func compose(op Op) ([]api.Message, error) {
	if err := op.Check(); err != nil {
		return nil, err
	}
	msgs := Messages(op)
	for _, msg := range msgs {
		if err := link.Check(msg); err != nil {
			return nil, fmt.Errorf("%s: %w", op.Describe(), err)
		}
	}
	return msgs, nil
}

// add enters the answer to one message. Its purpose is the operation itself, or the withdrawal that
// precedes a deletion.
func add(r *OpResult, purpose Op, err error) {
	r.Count(err)
	found, unknown := batch.Classify(purpose, err, func(retval int32) (error, bool) { return meaningOf(purpose.Verb, retval) })
	if _, answered := link.Retval(err); answered && purpose.Verb == Withdraw && r.Op.Verb == DelRow && found != nil {
		// The row is deleted nevertheless. The next read finds the address, and Diff
		// withdraws it by itself.
		r.Unknown = true
		return
	}
	if r.Err == nil {
		r.Err = found
	}
	// VPP has carried out a part of the operation only, so the row has to be read.
	partial := r.Messages > 0 && r.Err != nil && !errors.Is(r.Err, link.ErrUnknown) && len(Messages(r.Op)) > 1
	r.Unknown = r.Unknown || unknown || partial
}

// Errors of this package, for errors.Is. Apply's errors classify the return value of VPP for the
// operation.
var (
	// ErrExists means that VPP holds something under this key already (-81). It may be the
	// wanted mapping or a mapping of another owner: read back.
	ErrExists = link.Classified("exists already", link.ErrStale)
	// ErrVanished means that the row to be changed is not in VPP (-6): read back.
	ErrVanished = link.Classified("row is not there", link.ErrStale)
	// ErrDisabled means that the NAT44 plugin is not enabled (-126): VPP has restarted, or an
	// operator disabled it.
	ErrDisabled = link.Classified("nat44 plugin is not enabled", link.ErrDisabled)
	// ErrTooFew means that VPP refused to take a local from a row with two entries (-1): the
	// row differs from the State.
	ErrTooFew = link.Classified("row would have fewer than two entries", link.ErrStale)
	// ErrForeign means that the key belongs to a mapping of another kind, which has another
	// owner (-7).
	ErrForeign = errors.New("held by a mapping of another kind")
	// ErrNoInterface means that VPP does not know the interface any more (-2).
	ErrNoInterface = errors.New("no such interface")
	// ErrOutput means that the interface is an output interface of NAT and can have no other
	// role (-81).
	ErrOutput = errors.New("interface is an output interface")
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	retUnspecified    = -1
	retNoInterface    = -2
	retNoSuchEntry    = -6
	retInvalidValue   = -7
	retValueExist     = -81
	retUnsupported    = -126
	retAlreadyEnabled = -170
)

// cause is the key of the table in meaningOf: the same return value means different things for
// different operations.
type cause struct {
	verb   Verb
	retval int32
}

// meaningOf classifies a return value other than 0: nil where the goal of the operation is reached
// nevertheless, batch.ErrRejected where the value has no special meaning. unknown is set where the
// answer contradicts the State.
func meaningOf(verb Verb, retval int32) (err error, unknown bool) {
	if retval == retUnsupported {
		return ErrDisabled, true
	}
	if verb == SetShare || verb == Mend || verb == Grow { // entries of a row, like backends
		verb = AddLocal
	}
	switch (cause{verb, retval}) {
	case cause{Enable, retAlreadyEnabled}, cause{AddAddress, retValueExist}, cause{DelAddress, retNoSuchEntry},
		cause{DelRoles, retNoInterface}, cause{DelRoles, retNoSuchEntry}, cause{DelRow, retNoSuchEntry},
		cause{AddPool, retValueExist}, cause{DelPool, retNoSuchEntry}, cause{DelOutput, retNoSuchEntry}, cause{DelOutput, retNoInterface}:
		return nil, false
	case cause{DelLocal, retNoSuchEntry}:
		// The local is gone, or the whole row.
		return nil, true
	case cause{AddRow, retValueExist}, cause{AddLocal, retValueExist}, cause{AddOutput, retValueExist}:
		return ErrExists, true
	case cause{AddLocal, retNoSuchEntry}:
		return ErrVanished, true
	case cause{DelLocal, retUnspecified}:
		return ErrTooFew, true
	case cause{DelRow, retInvalidValue}, cause{AddLocal, retInvalidValue}, cause{DelLocal, retInvalidValue}:
		return ErrForeign, true
	case cause{AddRow, retInvalidValue}:
		return link.ErrUnsafe, false
	case cause{AddRoles, retNoInterface}, cause{AddOutput, retNoInterface}:
		return ErrNoInterface, true
	case cause{AddRoles, retValueExist}:
		return ErrOutput, true
	}
	return batch.ErrRejected, false
}
