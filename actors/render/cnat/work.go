package cnat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// settingsWanted are the settings and interfaces that VPP should have. Each packet of IPv6 pays for
// the nodes of CNAT, so interfaces get them with the first row. They keep them when the last row
// goes, because connections may outlive it.
func (a *adapter) settingsWanted() *cnat.Want {
	want := a.planned.Want()
	want.Targets, want.Partial = a.remote.Targets(), a.around.Phase != render.Passed
	for _, i := range a.set.GetInterfaces() {
		switch {
		case a.needed && (i.GetFrontend() || i.GetBackend()):
			want.Interfaces[i.GetSwIfIndex()] = tablesOf(i)
		case i.GetDetached():
			want.Interfaces[i.GetSwIfIndex()] = nil
		}
	}
	return want
}

// tablesOf are the tables of source NAT for an interface. No process behind a host interface can
// reach itself through a service. A local interface that leads to endpoints counts as one of pods,
// even before Kubernetes has delivered the pods.
func tablesOf(i *messages.Interface) *cnat.Tables {
	pod := i.GetKind() == messages.InterfaceKind_INTERFACE_POD || len(i.GetPods()) > 0 || i.GetLocal() && i.GetBackend()
	return &cnat.Tables{Host: i.GetLocal() && !pod, Outside: !i.GetLocal() && !pod}
}

// settingOps are the operations on settings and interfaces.
func (a *adapter) settingOps() []cnat.Op {
	before, after := cnat.DiffSettings(a.have, a.settingsWanted())
	return append(before, after...)
}

// Work satisfies render.Kind: settings and interfaces first, then the rows that have to be deleted
// before they can be added, then all other rows.
func (a *adapter) Work(steps []render.Chosen[rule.Key]) render.Work[rule.Key] {
	var settings, detach, replaced, put, gone []cnat.Op
	if !a.settings {
		want := a.settingsWanted()
		a.have.Assume(want)
		a.kept = a.have.Excludes(want.Targets)
		settings, detach = cnat.DiffSettings(a.have, want)
		if a.settings = len(settings)+len(detach) == 0; a.settings {
			a.refused = ""
		}
	}
	for _, s := range steps {
		for _, op := range render.Unboxed[cnat.Op](nil, s.Ops) {
			switch {
			case !s.Wanted:
				gone = append(gone, op)
			case op.Verb == cnat.DelRow:
				replaced = append(replaced, op)
			default:
				op.Newer = a.have.Newer
				put = append(put, op)
			}
		}
	}
	return render.Batch(slices.Concat(settings, replaced, put, gone, detach), cnat.Apply, result)
}

func result(d *cnat.OpResult) render.Result[rule.Key] {
	return render.Result[rule.Key]{
		Object: d.Op.Key, Setting: !d.Op.OnRow(), Err: d.Err, Unknown: d.Unknown, Op: d.Op,
		Idle: d.Messages == 0 && d.Err == nil,
	}
}

// Record satisfies render.Kind.
func (a *adapter) Record(results []render.Result[rule.Key]) {
	for i := range results {
		r := &results[i]
		op, _ := r.Op.(cnat.Op)
		if r.Err == nil {
			a.have.Record(op)
		} else if op.Below.IsValid() { // the row is not wanted while the route exists
			a.have.Below[op.Key.Addr], r.Err = op.Below, nil
		} else if op.Verb == cnat.Attach || op.Verb == cnat.Detach {
			if render.Refused(r.Err) {
				a.refused = r.Err.Error()
			}
		}
	}
}

// Diff satisfies render.Kind.
func (a *adapter) Diff(read any, sweep bool) (operations []string) {
	state, want := read.(*cnat.State), a.settingsWanted() //nolint:forcetypeassert // Reader made it
	want.Rows = a.claims.All()
	state.Inherit(a.have, a.wanted)
	for _, op := range cnat.Diff(state, want, sweep) {
		operations = append(operations, op.Describe())
	}
	return operations
}

// Rows satisfies render.Kind.
func (a *adapter) Rows(service string, known bool) (wanted, held []*messages.RowState) {
	plan := a.plans[service]
	if plan == nil {
		return nil, nil
	}
	for i := range plan.Rows {
		r := &plan.Rows[i]
		wanted = append(wanted, r.State(false))
		if is := a.held(r.Key); known && is != nil && a.claims.Owner(r.Key) == service {
			held = append(held, is.State(true))
		}
	}
	return wanted, held
}

// Acknowledge satisfies render.Kind.
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

// remove removes the agent's objects. Translations and source NAT have marks; the nodes on
// interfaces go if the agent has recorded them as its own. Source NAT and nodes stay if another
// client of VPP uses CNAT. A VPP without CNAT has nothing to remove.
func remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	indexes, err := cnat.Interfaces(ctx, vpp)
	if err != nil {
		return fmt.Errorf("clean up CNAT: %w", err)
	}
	state, err := cnat.Read(ctx, vpp, false, indexes, nil)
	if errors.Is(err, link.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean up CNAT: %w", err)
	}
	for _, index := range slices.Sorted(maps.Keys(state.Attached)) {
		if !r.Owned.HasNode(index) {
			r.Keep(owned.Object{Kind: owned.Node, Interface: index}.String())
			delete(state.Attached, index)
		}
	}
	for _, object := range state.Theirs() {
		r.Keep(object)
	}
	ops := cnat.Removal(state)
	return render.CarryOut(ctx, vpp, r, ops, cnat.Apply)
}
