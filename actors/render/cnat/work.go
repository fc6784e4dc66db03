package cnat

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	ops := slices.Concat(settings, replaced, put, gone, detach)
	return render.Batch(ops, cnat.Apply, func(op cnat.Op) (rule.Key, bool) { return op.Key, !op.OnRow() })
}

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

func (a *adapter) Diff(read any, sweep bool) (operations []render.Difference) {
	state, want := read.(*cnat.State), a.settingsWanted() //nolint:forcetypeassert // Reader made it
	want.Rows = a.claims.All()
	state.Inherit(a.have, a.wanted)
	for _, op := range cnat.Diff(state, want, sweep) {
		d := render.Difference{Text: op.Describe()}
		if op.Key.Port != 0 { // settings have none
			_, held := state.Rows[op.Key]
			d.Object, d.Missing = op.Key.String(), op.Verb == cnat.PutRow && !held
		}
		operations = append(operations, d)
	}
	return operations
}

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
