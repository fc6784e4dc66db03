package acl

import (
	"context"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// OpResult is the outcome of one operation, with the indices of the ACLs that were created, as
// State.Record needs it.
type OpResult = batch.Result[Op]

// Apply carries out the operations in their order and returns one result per operation. Adjacent
// operations with the same verb go to VPP in one pipelined batch. A failed operation does not stop
// the later ones, except operations that need an ACL which could not be created.
//
// VPP has no message that changes the input list alone, so Apply reads the lists of all interfaces
// once more right before it sets the first one, and skips an interface whose lists have changed: a
// concurrent change by another client is lost only if it falls between this read and the write.
func Apply(ctx context.Context, c link.Caller, ops []Op) []OpResult {
	a := applier{caller: c, results: make([]OpResult, len(ops)), created: map[string]uint32{}}
	for i, op := range ops {
		a.results[i] = OpResult{Op: op, Outcome: batch.Outcome{Err: op.Check()}}
	}
	for from := 0; from < len(ops); {
		to := from + 1
		for to < len(ops) && ops[to].Verb == ops[from].Verb {
			to++
		}
		a.batch(ctx, from, to)
		from = to
	}
	return a.results
}

// applier is the state of one Apply.
type applier struct {
	caller  link.Caller
	results []OpResult
	// created are the indices of the ACLs created so far, by tag: a list refers to an ACL that
	// an earlier operation of the same batch creates.
	created map[string]uint32
}

// batch carries out adjacent operations of one verb.
func (a *applier) batch(ctx context.Context, from, to int) {
	results := a.results[from:to]
	if results[0].Op.Verb == SetLists {
		a.prepareLists(ctx, results)
	}
	batch.Send(ctx, a.caller, results, func(i int) []api.Message { return []api.Message{Message(results[i].Op)} }, a.book)
}

// prepareLists enters the indices of new ACLs into the lists, and refuses lists that another client
// has changed since the State was read.
func (a *applier) prepareLists(ctx context.Context, results []OpResult) {
	lists, err := readLists(ctx, a.caller)
	for i := range results {
		r := &results[i]
		missing := a.resolve(&r.Op)
		switch {
		case r.Err != nil:
		case err != nil:
			// This error comes first: an ACL that got no answer because the connection
			// ended was not refused.
			r.Err = fmt.Errorf("%s: %w: %w", r.Op.Describe(), link.ErrNotSent, err)
		case missing != "":
			r.Err = fmt.Errorf("%s: %w: %s", r.Op.Describe(), link.ErrSkipped, missing)
		case !lists[r.Op.Interface].equal(r.Op.Was):
			r.Err, r.Unknown = fmt.Errorf("%s: %w", r.Op.Describe(), ErrChanged), true
		}
	}
}

// resolve enters the indices of ACLs that were created; it returns the tag of one that could not
// be.
func (a *applier) resolve(op *Op) (missing string) {
	op.Input = slices.Clone(op.Input)
	for i := range op.Input {
		ref := &op.Input[i]
		if ref.Tag == "" || ref.Index != none {
			continue
		}
		index, found := a.created[ref.Tag]
		if !found {
			return ref.Tag
		}
		ref.Index = index
	}
	return ""
}

// book classifies the answer to an operation and enters it.
func (a *applier) book(r *OpResult, answer link.Result) {
	err := answerOf(answer)
	r.Add(err, func(retval int32) (error, bool) { return meaningOf(r.Op, retval) })
	if err != nil || r.Op.Verb != Create {
		return
	}
	reply, ok := answer.Reply.(*acl.ACLAddReplaceReply)
	if !ok {
		r.Err, r.Unknown = fmt.Errorf("%s: %w: answered by %T", r.Op.Describe(), link.ErrProtocol, answer.Reply), true
		return
	}
	r.Op.Index, a.created[r.Op.Tag] = reply.ACLIndex, reply.ACLIndex
}

// answerOf returns the error of an answer. The reply to acl_add_replace has its return value after
// the index, where a caller that expects it first does not see it.
func answerOf(answer link.Result) error {
	reply, ok := answer.Reply.(*acl.ACLAddReplaceReply)
	if answer.Err == nil && ok && reply.Retval != 0 {
		return &link.RetvalError{Message: (&acl.ACLAddReplace{}).GetMessageName(), Retval: reply.Retval}
	}
	return answer.Err
}
