package nat44

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/class"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Settings satisfies render.Configured.
func (a *adapter) Settings() bool { return a.settings }

// RolesRefused satisfies render.RoleGiver.
func (a *adapter) RolesRefused() string { return a.refused }

// settingsWanted are the settings and roles VPP should have. Before the barrier nothing is taken
// away.
func (a *adapter) settingsWanted() *nat44.Want {
	want := &nat44.Want{Globals: a.planned.Globals(), Interfaces: map[uint32]bool{}}
	want.Retired, want.Shared = a.hairpins, a.shared
	for _, i := range a.set.GetInterfaces() {
		if needed(i) {
			want.Interfaces[i.GetSwIfIndex()] = true
		} else if i.GetDetached() {
			want.Interfaces[i.GetSwIfIndex()] = false
		}
	}
	a.external.settings(want, a.set)
	return want
}

// shared are the addresses that only frontends of services other than cluster IPs have.
func (a *adapter) shared() map[netip.Addr]bool {
	shared := map[netip.Addr]bool{}
	for k := range a.claims.Keys() {
		first, _ := a.claims.First(k)
		others := first.Value.Rank != rule.OfClusterIP && first.Value.Rank != rule.OfExternalConfiguration
		before, seen := shared[k.Addr]
		shared[k.Addr] = others && (before || !seen)
	}
	return shared
}

// needed reports whether services need the roles of an interface.
func needed(i *messages.Interface) bool { return i.GetFrontend() || i.GetBackend() }

// Work satisfies render.Apply: access lists alone, because rows and roles that rely on them must
// not be under way when VPP refuses one; then settings and roles first and removals last.
func (a *adapter) Work(keys []object) render.Work[object] {
	if slices.Contains(keys, missingLists) {
		return a.listWork(missingLists)
	}
	var ops, removals []nat44.Op
	if !a.settings && !a.listsPending() {
		ops = nat44.DiffGlobals(a.have, a.settingsWanted())
		if a.settings = len(ops) == 0; a.settings {
			a.refused = ""
		}
	}
	ops, retirements := splitRetirements(ops)
	for _, k := range keys {
		if k == extraLists {
			continue
		}
		want := a.wanted(k)
		steps := nat44.Part(nat44.DiffRow(a.held(k), want), render.TurnMessages)
		if want == nil {
			removals = append(removals, steps...)
			continue
		}
		if ops = append(ops, steps...); len(steps) > 0 && want.Idle() && a.have.Received[k.Addr] && !a.serves(k) {
			// routes refuse what the row leads back
			ops = append(ops, nat44.Op{Verb: nat44.Withdraw, Addr: k.Addr})
		}
	}
	if ops = slices.Concat(ops, removals, retirements); len(ops) > 0 {
		nat44.Release(a.have, ops)
		return render.Batch(ops, nat44.Apply, result)
	}
	if slices.Contains(keys, extraLists) {
		return a.listWork(extraLists)
	}
	return nil
}

// serves reports whether another row of the address has backends for new connections.
func (a *adapter) serves(k object) bool {
	for key, r := range a.have.Rows {
		if key.Addr == k.Addr && key != k.Key && !r.Idle() {
			return true
		}
	}
	return false
}

// listWork are the operations on access lists for one of their objects.
func (a *adapter) listWork(k object) render.Work[object] {
	a.rests.begin(k)
	_, err := a.progress.Refusal(k)
	ops := a.ranges.Additions
	if k == extraLists {
		ops = func(again bool) []acl.Op { return a.ranges.Removals(a.rowDirty, again) }
	}
	return render.Batch(ops(err != nil), acl.Apply, func(d *acl.OpResult) render.Result[object] {
		return render.Result[object]{Text: d.Op.Describe(), Object: k, Err: d.Err, Unknown: d.Unknown, Op: d.Op}
	})
}

// splitRetirements sets apart what goes after the rows: roles and addresses that are not needed any
// more. Two kinds of roles go first: a lone inside role, because it is dangerous, and those of an
// interface that becomes an output interface next, because VPP refuses one that still has them.
func splitRetirements(settings []nat44.Op) (ops, retirements []nat44.Op) {
	for i, op := range settings {
		becomes := i+1 < len(settings) && settings[i+1].Verb == nat44.AddOutput && settings[i+1].Interface == op.Interface
		if op.Verb == nat44.DelAddress || op.Verb == nat44.DelRoles && op.Roles != nat44.Inside && !becomes {
			retirements = append(retirements, op)
		} else {
			ops = append(ops, op)
		}
	}
	return ops, retirements
}

func result(d *nat44.OpResult) render.Result[object] {
	r := render.Result[object]{Text: d.Op.Describe(), Setting: !d.Op.OnRow(), Err: d.Err, Unknown: d.Unknown, Op: d.Op}
	if d.Op.OnRow() {
		r.Object = rowOf(d.Op.Key)
	}
	return r
}

// Record satisfies render.Apply.
func (a *adapter) Record(results []render.Result[object]) {
	listed := false
	var refused *acl.Op
	var done []nat44.Op // by VPP, not recorded yet
	for i := range results {
		r := &results[i]
		a.external.stale = a.external.stale || r.Setting || a.concernsExternal(r.Object)
		switch op := r.Op.(type) {
		case acl.Op:
			listed = true
			a.rests.end(r.Object)
			switch {
			case r.Err == nil:
				a.ranges.Record(op)
			case refused == nil:
				refused = &op
			}
		case nat44.Op:
			if r.Err == nil && !r.Unknown {
				done = append(done, op)
				continue
			}
			a.record(done)
			done = done[:0]
			if op.OnRow() {
				a.doubtful[rowOf(op.Key)] = true
			}
			if r.Err == nil {
				a.record([]nat44.Op{op})
			} else {
				a.suspect(op, r.Err)
			}
		}
	}
	a.record(done)
	if listed {
		a.ranges.Refused(refused)
		a.claims.Concern(a.ranges.Compare()...)
	}
	if refused != nil { // VPP drops the same, for another reason
		a.claims.Concern(a.ranges.Concerned()...)
	}
}

// record enters operations on settings, roles or rows that VPP has carried out. A row that is as it
// is wanted now shares its backends with what is wanted.
func (a *adapter) record(done []nat44.Op) {
	a.have.Record(done...)
	for i, op := range done {
		if last := i+1 == len(done) || done[i+1].Key != op.Key; !last || !op.OnRow() {
			continue
		}
		held := a.held(rowOf(op.Key))
		a.drains.follow(rowOf(op.Key), held)
		if held != nil && held.Idle() && a.have.Received[op.Key.Addr] {
			a.settings = false // the address has to be withdrawn
		}
		if want := a.wanted(rowOf(op.Key)); want != nil {
			a.have.Share(*want)
		}
	}
}

// suspect enters an operation that VPP has not carried out, or not certainly.
func (a *adapter) suspect(op nat44.Op, err error) {
	a.have.Suspect(op)
	if op.Verb == nat44.AddRoles || op.Verb == nat44.DelRoles {
		if k, _ := class.Of(err); k == class.Retry || k == class.Abort {
			// otherwise nothing is known of it
			a.refused = err.Error()
		}
	}
}

// Acknowledge satisfies render.Acknowledger.
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

// rowState says what became of one row: in sync, pending, refused, or of another owner.
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
