package cnat

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
)

func (a *adapter) Acknowledge(ack *messages.RenderAck, service string, known bool) {
	plan := a.plans[service]
	if plan == nil {
		return
	}
	ack.Approximations = slices.Concat(plan.Approximations, a.unreachable(service, plan))
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
	if slices.ContainsFunc(plan.Rows, func(r cnat.Row) bool { return !a.others.Serves(r.Key.Addr.Is6()) }) {
		ack.State = messages.RenderState_RENDER_FAILED
	}
}

// rowState is the state of one row: in sync, pending, refused, or of another owner.
func (a *adapter) rowState(service string, r *cnat.Row, known bool) *messages.RowState {
	if a.claims.Owner(r.Key) != service {
		return render.RowState(Name, r.Key, false, render.ErrContested)
	}
	_, err := a.progress.Refusal(r.Key)
	return render.RowState(Name, r.Key, known && !a.progress.Dirty(r.Key) && err == nil, err)
}

// unreachable are the differences of endpoints whose address VPP itself has in the table of their
// interface: a packet of the pod to itself is looked up there and received by VPP.
func (a *adapter) unreachable(service string, plan *cnat.ServicePlan) (found []*messages.Approximation) {
	own := ownAddresses(a.set)
	if len(own) == 0 {
		return nil
	}
	for i := range plan.Rows {
		r := &plan.Rows[i]
		if slices.ContainsFunc(r.Backends, func(b netip.AddrPort) bool { return slices.Contains(own, b.Addr().String()) }) {
			found = append(found, &messages.Approximation{
				Service: service, Frontend: r.Key.String(), Wanted: "a pod reaches itself through the service", Rendered: "such a connection is lost, unless the CNI has set a classifier for the pod",
				Why: "VPP itself has the address of the pod in the table of the pod's interface",
			})
		}
	}
	return found
}

// ownAddresses are the addresses of pods that VPP itself has, ordered by interface.
func ownAddresses(set *messages.InterfaceSet) (all []string) {
	for _, i := range set.GetInterfaces() {
		if i.GetOwnAddress() != "" {
			all = append(all, i.GetOwnAddress())
		}
	}
	return all
}
