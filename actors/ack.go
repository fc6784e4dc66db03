package actors

import (
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// ack describes what became of a service in VPP, as far as it is known.
func (l *ledger) ack(renderer, key string, have *nat44.State) *messages.RenderAck {
	a := l.accounts[key]
	ack := &messages.RenderAck{
		Key: key, Generation: a.generation, Hash: a.hash, Renderer: renderer, State: messages.RenderState_RENDER_IN_SYNC,
	}
	if have == nil {
		ack.State, ack.Error = messages.RenderState_RENDER_PENDING, "waiting for VPP"
	}
	left := l.left(key, a)
	if a.plan == nil {
		if have != nil && left {
			ack.State = messages.RenderState_RENDER_RETIRED
		}
		l.ackLeaving(ack, a)
		return ack
	}
	ack.Approximations = a.plan.Approximations
	for i := range a.plan.Rows {
		l.ackRow(ack, key, &a.plan.Rows[i], have)
	}
	l.ackLeaving(ack, a)
	ack.Conflicts = l.claims.Conflicts(key)
	for _, e := range a.plan.Unrendered {
		if ack.Error == "" {
			ack.Error = fmt.Sprintf("not rendered: %s: %s", e.GetField(), e.GetMessage())
		}
	}
	return ack
}

// ackLeaving accounts for the rows that must leave VPP: as long as one is there, the service is served as it was before.
func (l *ledger) ackLeaving(ack *messages.RenderAck, a *account) {
	for _, k := range slices.SortedFunc(maps.Keys(a.leaving), nat44.Key.Compare) {
		if failed := l.failed[k]; failed != nil {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, k.String()+": "+failed.err.Error()
		} else if ack.State == messages.RenderState_RENDER_IN_SYNC {
			ack.State = messages.RenderState_RENDER_PENDING
		}
	}
}

// ackRow adds one row: in sync, pending, failed, or owned by somebody else.
func (l *ledger) ackRow(ack *messages.RenderAck, key string, row *nat44.Row, have *nat44.State) {
	owner, _ := l.claims.Owner(row.Key)
	failed := l.failed[row.Key]
	switch {
	case owner != key:
		ack.Rows = append(ack.Rows, row.State(false, errContested))
	case failed != nil:
		ack.Rows = append(ack.Rows, row.State(false, failed.err))
		ack.State, ack.Error = messages.RenderState_RENDER_FAILED, row.Key.String()+": "+failed.err.Error()
	case have == nil || l.dirty[row.Key]:
		ack.Rows = append(ack.Rows, row.State(false, nil))
		if ack.State == messages.RenderState_RENDER_IN_SYNC {
			ack.State = messages.RenderState_RENDER_PENDING
		}
	default:
		ack.Rows = append(ack.Rows, row.State(true, nil))
	}
}
