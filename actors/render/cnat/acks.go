package cnat

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
)

// Acknowledge satisfies render.Acknowledger.
func (a *adapter) Acknowledge(ack *messages.RenderAck, service string, known bool) {
	plan := a.plans[service]
	if plan == nil {
		return
	}
	ack.Approximations = plan.Approximations
	unrendered := plan.Unrendered
	for i := range plan.Rows {
		r := &plan.Rows[i]
		if ip6 := r.Key.Addr.Is6(); !a.others.Serves(ip6) {
			unrendered = append(slices.Clip(unrendered), &messages.ObjectError{
				Source: Name, Kind: "Service", Object: service, Field: "address",
				Message: fmt.Sprintf("frontend %s is not served by CNAT: %s", r.Key, a.othersAddress(ip6)),
			})
			continue
		}
		if network, is := a.below(r.Key); is {
			unrendered = append(slices.Clip(unrendered), &messages.ObjectError{
				Source: Name, Kind: "Service", Object: service, Field: "address",
				Message: fmt.Sprintf("frontend %s is not served: %v: %s", r.Key, cnat.ErrBelowICMP, network),
			})
			continue
		}
		if err := a.lacks(r); err != nil {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, fmt.Sprintf("%s: %v", r.Key, err)
		}
		ack.Rows = append(ack.Rows, a.rowState(service, r, known))
	}
	render.Unrendered(ack, "not rendered", unrendered)
}

// rowState is the state of one row: in sync, pending, refused, or of another owner.
func (a *adapter) rowState(service string, r *cnat.Row, known bool) *messages.RowState {
	if a.claims.Owner(r.Key) != service {
		return render.RowState(Name, r.Key, false, render.ErrContested)
	}
	_, err := a.progress.Refusal(r.Key)
	return render.RowState(Name, r.Key, known && !a.progress.Dirty(r.Key) && err == nil, err)
}
