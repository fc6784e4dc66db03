package nat44

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// settingsWanted are the settings and roles that VPP should have.
func (a *adapter) settingsWanted() *nat44.Want {
	want := &nat44.Want{Globals: a.planned.Globals(), Interfaces: map[uint32]bool{}, OtherProtocols: map[uint32]bool{}}
	want.Retired, want.Shared = a.hairpins, a.shared
	for _, i := range a.set.GetInterfaces() {
		want.OtherProtocols[i.GetSwIfIndex()] = a.outsideAlone(i)
		if needed(i) {
			want.Interfaces[i.GetSwIfIndex()] = true
		} else if i.GetDetached() {
			want.Interfaces[i.GetSwIfIndex()] = false
		}
	}
	a.external.settings(want, a.set)
	return want
}

// outsideAlone reports whether an interface has the outside role alone, if it has one.
func (a *adapter) outsideAlone(i *messages.Interface) bool {
	return a.planned.OutsideAlone || i.GetOtherProtocols() != ""
}

// shared are the addresses whose frontends all belong to services and are no cluster IPs.
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

// Work satisfies render.Kind. Missing access lists go alone, because rows and roles that rely on
// them must not be under way when VPP refuses a list. Otherwise settings and roles go first and
// removals last.
func (a *adapter) Work(steps []render.Chosen[object]) render.Work[object] {
	var ops, removals []nat44.Op
	var extra *render.Chosen[object]
	for i, s := range steps {
		switch into := &ops; {
		case s.Key == missingLists:
			return a.listWork(&s)
		case s.Key == extraLists:
			extra = &steps[i]
		default:
			if !s.Wanted {
				into = &removals
			}
			*into = render.Unboxed(*into, s.Ops)
		}
	}
	var settings []nat44.Op
	if !a.settings && !a.listsPending() {
		settings = nat44.DiffGlobals(a.have, a.settingsWanted())
		if a.settings = len(settings) == 0; a.settings {
			a.refused = ""
		}
	}
	settings, retirements := splitRetirements(settings)
	if ops = slices.Concat(settings, ops, removals, retirements); len(ops) > 0 {
		nat44.Release(a.have, ops)
		return render.Batch(ops, nat44.Apply, func(op nat44.Op) (object, bool) { return rowOf(op.Key), !op.OnRow() })
	}
	if extra != nil {
		return a.listWork(extra)
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

// listWork returns the operations for one of the two objects of the access lists.
func (a *adapter) listWork(s *render.Chosen[object]) render.Work[object] {
	a.rests.begin(s.Key)
	k := s.Key
	return render.Batch(render.Unboxed[acl.Op](nil, s.Ops), acl.Apply, func(acl.Op) (object, bool) { return k, false })
}

// splitRetirements sets apart the operations that come after the rows: roles and addresses that are
// not needed any more. Two kinds of roles go before the rows. A lone inside role is dangerous. An
// interface that becomes an output interface must not have roles, or VPP refuses it.
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

func (a *adapter) Record(results []render.Result[object]) {
	listed := false
	var refused *acl.Op
	var done []nat44.Op // carried out by VPP, not recorded yet
	for i := range results {
		r := &results[i]
		a.external.stale = a.external.stale || r.Setting || a.concernsExternal(r.Object)
		switch op := r.Op.(type) {
		case acl.Op:
			listed = true
			a.rests.end(r.Object)
			switch {
			case r.Err == nil:
				a.ranges.record(op)
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
		a.ranges.blamed = refused
		a.claims.Concern(a.ranges.compare()...)
	}
	if refused != nil { // VPP drops the same packets, for another reason
		a.claims.Concern(a.ranges.concerned()...)
	}
}

// record enters operations on settings, roles or rows that VPP has carried out. To save memory, the
// held row shares its backends with the wanted one.
func (a *adapter) record(done []nat44.Op) {
	a.have.Record(done...)
	for i, op := range done {
		if last := i+1 == len(done) || done[i+1].Key != op.Key; !last || !op.OnRow() {
			continue
		}
		held := a.held(rowOf(op.Key))
		a.follow(rowOf(op.Key), held)
		if held != nil && held.Idle() && a.have.Received[op.Key.Addr] {
			a.settings = false // the address has to be withdrawn
		}
		if want := a.wanted(rowOf(op.Key)); want != nil {
			a.have.Share(*want)
		}
	}
}

// suspect enters an operation that VPP may not have carried out.
func (a *adapter) suspect(op nat44.Op, err error) {
	a.have.Suspect(op)
	if op.Verb == nat44.AddRoles || op.Verb == nat44.DelRoles {
		if render.Refused(err) {
			a.refused = err.Error()
		}
	}
}
