package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// RowsQuery asks a renderer for the rows of one service. The answer is a RowsPage.
type RowsQuery struct {
	// Service is the key, "namespace/name".
	Service string
}

// RowsPage answers a RowsQuery.
type RowsPage struct {
	// Wanted are the rows that the service wants, also where somebody else owns the key; Held what VPP was last seen or made to hold under those
	// of their keys that nobody else owns.
	Wanted, Held []*messages.RowState
}

func (r *renderer) rows(q *RowsQuery) *RowsPage {
	page := &RowsPage{}
	a := r.accounts[q.Service]
	if a == nil || a.plan == nil {
		return page
	}
	for i := range a.plan.Rows {
		row, held := a.plan.Rows[i], (*nat44.Row)(nil)
		if r.have != nil {
			held = r.held(row.Key)
		}
		page.Wanted = append(page.Wanted, row.Beside(held).State(false, nil))
		if owner, claimed := r.claims.Owner(row.Key); held != nil && (!claimed || owner == q.Service) {
			page.Held = append(page.Held, held.State(true, nil))
		}
	}
	return page
}

// DiffQuery asks a renderer to compare VPP, read now, with what it should hold, without changing anything. The answer is a DiffPage.
type DiffQuery struct{}

// DiffPage answers a DiffQuery.
type DiffPage struct {
	// Operations would make VPP equal to what it should hold, each as one line; empty = it is.
	Operations []string
	// Err is why VPP could not be read; nil = it was.
	Err error
}

// diffDone brings the answer of a DiffQuery back to the actor.
type diffDone struct {
	to   *actor.PID
	page *DiffPage
}

// awaitsDiff is who awaits the answer of a DiffQuery that can be worked on; nil = nobody does, or was told that it cannot.
func (o *outlet) awaitsDiff(c *runtime.Context, set *messages.InterfaceSet) *actor.PID {
	to := c.Sender()
	if to != nil && (!o.link.GetUp() || set == nil) {
		c.Send(to, &DiffPage{Err: errNotConnected})
		return nil
	}
	return to
}

// diff reads VPP in a goroutine; the renderer goes on meanwhile.
func (r *renderer) diff(c *runtime.Context) {
	to := r.awaitsDiff(c, r.set)
	if to == nil {
		return
	}
	want := r.globalsWanted()
	want.Rows = r.claims.Rows()
	r.spare(want)
	r.answerEach(c, r.arrange(r.owner))
	var guard *acl.Want
	if !r.guard.absent && r.guard.want.Interfaces != nil {
		want := r.guard.want
		guard = &want
	}
	sweep, caller, post := r.passed(), r.deps.Link, c.Post()
	c.Go("diff", func(ctx context.Context) { post(&diffDone{to, compareWithVPP(ctx, caller, want, guard, sweep)}) })
}

func compareWithVPP(ctx context.Context, caller link.Caller, want *nat44.Want, guard *acl.Want, sweep bool) *DiffPage {
	state, err := nat44.Read(ctx, caller)
	if err != nil {
		return &DiffPage{Err: err}
	}
	page := &DiffPage{}
	for _, op := range nat44.Diff(state, want, sweep) {
		page.Operations = append(page.Operations, op.Describe())
	}
	if guard == nil {
		return page
	}
	lists := readLists(ctx, caller)
	if lists.err != nil {
		return &DiffPage{Err: lists.err}
	}
	if lists.state != nil {
		for _, op := range acl.Diff(lists.state, guard, sweep) {
			page.Operations = append(page.Operations, op.Describe())
		}
	}
	return page
}
