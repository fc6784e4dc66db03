package actors

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// ack describes what became of a service in VPP, as far as it is known: of its rows, and of what has to be dropped in front of them.
func (l *ledger) ack(renderer, key string, have *nat44.State) *messages.RenderAck {
	ack := l.ackRows(renderer, key, have)
	l.guard.ack(ack, key)
	return ack
}

// ackRows describes what became of the rows of a service.
func (l *ledger) ackRows(renderer, key string, have *nat44.State) *messages.RenderAck {
	a := l.accounts[key]
	ack := a.ack(renderer, key, have != nil)
	left := l.left(key)
	if a.plan == nil {
		if have != nil && left {
			ack.State = messages.RenderState_RENDER_RETIRED
		}
		l.ackLeaving(ack, key)
		return ack
	}
	ack.Approximations = a.plan.Approximations
	for i := range a.plan.Rows {
		l.ackRow(ack, key, &a.plan.Rows[i], have)
	}
	l.ackLeaving(ack, key)
	ack.Conflicts = l.claims.Conflicts(key)
	ackUnrendered(ack, "not rendered", a.plan.Unrendered)
	return ack
}

// ackUnrendered adds parts of a service that there are no means for.
func ackUnrendered(ack *messages.RenderAck, what string, parts []*messages.ObjectError) {
	if len(parts) == 0 {
		return
	}
	ack.Unrendered = slices.Concat(ack.GetUnrendered(), parts)
	if ack.GetError() != "" {
		return
	}
	ack.Error = fmt.Sprintf("%s: %s: %s", what, parts[0].GetField(), parts[0].GetMessage())
	if more := len(parts) - 1; more > 0 {
		ack.Error += fmt.Sprintf(" (and %d more)", more)
	}
}

// ackRow adds one row: in sync, pending, failed, or owned by somebody else.
func (l *ledger) ackRow(ack *messages.RenderAck, key string, row *nat44.Row, have *nat44.State) {
	if owner, _ := l.claims.Owner(row.Key); owner != key {
		ack.Rows = append(ack.Rows, row.State(false, errContested))
		return
	}
	_, dirty := l.dirty[row.Key]
	var err error
	if failed := l.failed[row.Key]; failed != nil {
		err = failed.err
	}
	ack.Rows = append(ack.Rows, row.State(have != nil && !dirty && err == nil, err))
	l.ackThing(ack, row.Key, dirty)
}
