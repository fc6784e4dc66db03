package nat44

import (
	"fmt"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// Acknowledge satisfies render.Kind.
func (a *adapter) Acknowledge(ack *messages.RenderAck, service string, known bool) {
	if plan := a.plans[service]; plan != nil {
		ack.Approximations = plan.Approximations
		for i := range plan.Rows {
			ack.Rows = append(ack.Rows, a.rowState(service, &plan.Rows[i], known))
			err := a.lacks(&plan.Rows[i])
			if a.ranges.Closed(plan.Rows[i].Key) {
				err = errClosed
			}
			if err != nil {
				ack.State, ack.Error = messages.RenderState_RENDER_FAILED, fmt.Sprintf("%s: %v", plan.Rows[i].Key, err)
			}
		}
		render.Unrendered(ack, "not rendered", plan.Unrendered)
		if a.another != "" && len(plan.Rows) > 0 {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, "not served: "+a.another
		}
	}
	_, err := a.progress.Refusal(missingLists)
	if err == nil {
		_, err = a.progress.Refusal(extraLists)
	}
	if err != nil {
		err = fmt.Errorf("access lists: %w", err)
	}
	a.ranges.Acknowledge(ack, service, err)
}

// rowState is the state of one row: in sync, pending, refused, or of another owner.
func (a *adapter) rowState(service string, r *nat44.Row, known bool) *messages.RowState {
	k := rowOf(r.Key)
	if a.claims.Owner(k) != service {
		return render.RowState(Name, r.Key, false, render.ErrContested)
	}
	if a.ranges.Closed(r.Key) {
		return render.RowState(Name, r.Key, false, errClosed)
	}
	_, err := a.progress.Refusal(k)
	return render.RowState(Name, r.Key, known && !a.progress.Dirty(k) && err == nil, err)
}
