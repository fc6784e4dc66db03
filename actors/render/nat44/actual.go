package nat44

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// reading is what was read of VPP.
type reading struct {
	state     *nat44.State
	withLists bool       // the access lists were read
	lists     *acl.State // nil = VPP has none, because the plugin is not loaded
}

// Forget satisfies render.Adapter.
func (a *adapter) Forget(restarted bool) {
	if restarted {
		a.drains = newDrains(a.drains.limit)
	}
	a.have, a.outside.stale = nil, true
	a.ranges.Forget()
	clear(a.rests)
}

// Reader satisfies render.Adapter. Access lists are read where ours may be, because their lists may
// be changed outside of the agent.
func (a *adapter) Reader(known bool) func(context.Context, link.Caller) (any, error) {
	withLists := !known || !a.ranges.Known() || a.ranges.Needed()
	return func(ctx context.Context, vpp link.Caller) (any, error) {
		state, err := nat44.Read(ctx, vpp)
		if err != nil || !withLists {
			return &reading{state: state}, err
		}
		held, err := readLists(ctx, vpp)
		return &reading{state, true, held}, err
	}
}

// readLists reads the access lists; nil = VPP cannot have any.
func readLists(ctx context.Context, vpp link.Caller) (*acl.State, error) {
	held, err := acl.Read(ctx, vpp)
	if errors.Is(err, link.ErrUnsupported) {
		return nil, nil //nolint:nilnil // no access lists is an answer
	}
	return held, err
}

// Adopt satisfies render.Adapter.
func (a *adapter) Adopt(read any, known, passed bool) render.Comparison[object] {
	m := read.(*reading) //nolint:forcetypeassert // Reader made it
	found := render.Comparison[object]{}
	before := a.have
	m.state.Inherit(before)
	a.settings, a.outside.stale = false, true
	if before != nil && maps.Equal(before.Foreign, m.state.Foreign) {
		a.have = m.state
	} else {
		found.Changed = a.claims.Change(slices.Collect(a.claims.Keys()), func() { a.have = m.state })
		a.ranges.OwnersChanged() // rows of others come and go also where no service has a row
	}
	for _, k := range a.drains.keys() {
		a.drains.follow(k, a.held(k))
	}
	for k, r := range a.have.Rows {
		a.drains.follow(rowOf(k), &r)
	}
	a.spread = a.have.Spread(a.config.AllWorkers)
	found.Changed = append(found.Changed, a.configure(a.planned)...)
	if m.withLists {
		availability, drifted := a.ranges.Adopt(m.lists)
		if availability {
			found.Services = a.ranges.Services()
			found.Changed = append(found.Changed, a.planAgain(found.Services)...)
		}
		if drifted {
			found.Drifted = append(found.Drifted, missingLists)
		}
		found.Services = append(found.Services, a.ranges.Compare()...)
	}
	found.Differing = a.differing(passed)
	if known && before != nil {
		found.Drifted = append(found.Drifted, a.drifted(before)...)
		found.Settings = a.strayed(before)
	}
	clear(a.doubtful)
	return found
}

// differing lists the objects that are not as wanted; what no service wants waits for the barrier.
func (a *adapter) differing(passed bool) (keys []object) {
	for k, held := range a.have.Rows {
		o := rowOf(k)
		if wanted, found := a.claims.Desired(o); found && wanted.Equal(held) { // nearly all
			a.have.Share(wanted)
			continue
		}
		if want := a.wanted(o); want == nil && passed && !a.spares(o) || want != nil && a.rowCost(o) > 0 {
			keys = append(keys, o)
		}
	}
	for k := range a.claims.Keys() {
		if _, held := a.have.Rows[k.Key]; held { // nearly all
			continue
		}
		if a.wanted(k) != nil {
			keys = append(keys, k)
		}
	}
	if a.ranges.Needed() {
		keys = append(keys, missingLists, extraLists)
	}
	return keys
}

// drifted lists the rows that VPP did not hold as believed.
func (a *adapter) drifted(before *nat44.State) (changed []object) {
	for k, old := range before.Rows {
		if now, held := a.have.Rows[k]; !a.doubtful[rowOf(k)] && (!held || !now.Equal(old)) {
			changed = append(changed, rowOf(k))
		}
	}
	for k := range a.have.Rows {
		if _, held := before.Rows[k]; !held && !a.doubtful[rowOf(k)] {
			changed = append(changed, rowOf(k))
		}
	}
	return changed
}

// strayed counts the settings and roles that have to be set again although VPP had them. Addresses
// that NAT44 has left behind are its own doing.
func (a *adapter) strayed(before *nat44.State) (n int) {
	if a.set == nil {
		return 0
	}
	want := a.settingsWanted()
	// roles by what is done with them; VPP may have taken some and refused the others
	open := map[nat44.Op]nat44.Roles{}
	for _, op := range nat44.DiffGlobals(before, want) {
		roles := op.Roles
		op.Roles = 0
		open[op] |= roles
	}
	for _, op := range nat44.DiffGlobals(a.have, want) {
		roles := op.Roles
		op.Roles = 0
		if expected, still := open[op]; op.Verb != nat44.Withdraw && (!still || roles&^expected != 0) {
			n++
		}
	}
	return n
}

// Cost satisfies render.Adapter.
func (a *adapter) Cost(k object) int {
	switch {
	case k.part != lists && k.part != surplus:
		return a.rowCost(k)
	case !a.ranges.Known() || a.ranges.Stale():
		return 1
	case k.part == lists:
		return len(a.ranges.Additions(false))
	default:
		return len(a.ranges.Removals(a.rowDirty, false))
	}
}

// rowCost is 0 where VPP holds a row as it is wanted, or one that may not be removed yet.
func (a *adapter) rowCost(k object) int {
	want := a.wanted(k)
	if want == nil && a.spares(k) {
		return 0
	}
	return nat44.Cost(nat44.DiffRow(a.held(k), want))
}

// Leftovers satisfies render.Adapter.
func (a *adapter) Leftovers() (keys []object) {
	a.settings = false
	for k := range a.have.Rows {
		if o := rowOf(k); a.wanted(o) == nil && !a.spares(o) {
			keys = append(keys, o)
		}
	}
	return keys
}

// Gate satisfies render.Adapter. Access lists come before rows and roles, so that no client gets in
// that a service keeps out; what they drop too much goes when the rows are as wanted.
func (a *adapter) Gate(k object, phase render.Phase) render.Gate {
	switch k.part {
	case lists:
		if !a.ranges.Known() || a.resting(missingLists) {
			return render.Blocked
		}
		return render.Open
	case surplus:
		switch {
		case phase < render.Passed:
			return render.Closed
		case !a.ranges.Known() || a.resting(extraLists) || a.listsPending() || a.rowsPending() > 0:
			return render.Blocked
		}
		return render.Open
	}
	want := a.wanted(k)
	switch {
	case a.listsPending() && !a.resting(missingLists), want != nil && a.ranges.Missing(k.Key):
		return render.Blocked
	case phase == render.Passed, want != nil && !a.anothers(k, want, phase):
		return render.Open
	}
	return render.Closed
}

// listsPending reports whether access lists are being programmed; what VPP refused holds up only
// the rows that it is for.
func (a *adapter) listsPending() bool {
	_, err := a.progress.Refusal(missingLists)
	return a.progress.Dirty(missingLists) && err == nil
}

// resting reports whether access lists rest (see rests). What VPP refused is tried when the work
// queue says so.
func (a *adapter) resting(k object) bool {
	_, err := a.progress.Refusal(k)
	return err == nil && a.rests.resting(k)
}

// rowsPending counts the rows that are being worked on.
func (a *adapter) rowsPending() int {
	n := a.progress.Pending()
	for _, k := range []object{missingLists, extraLists} {
		if _, err := a.progress.Refusal(k); a.progress.Dirty(k) && err == nil {
			n--
		}
	}
	return n
}

// anothers reports whether a row may be another service's than the one's that wants it now: VPP
// holds one of that service, or holds none of an address that several services may claim and not
// all have rendered. To change it before the barrier would cut connections for nothing, or send
// clients to backends of the wrong service.
func (a *adapter) anothers(k object, want *nat44.Row, phase render.Phase) bool {
	held := a.held(k)
	if held == nil {
		return phase == render.Rendering && want.Rank >= frontend.OfLoadBalancer
	}
	return !want.SameService(held)
}

// Summary satisfies render.Adapter.
func (a *adapter) Summary() string {
	return fmt.Sprintf("%d rows of ours, %d of others", len(a.have.Rows), len(a.have.Foreign))
}

// Diff satisfies render.Adapter.
func (a *adapter) Diff(sweep bool) func(context.Context, link.Caller) ([]string, error) {
	want, shared := a.settingsWanted(), a.shared()
	want.Shared = func() map[netip.Addr]bool { return shared } // the claims are the actor's
	want.Rows = map[frontend.Key]nat44.Row{}
	for k := range a.claims.Keys() {
		if r := a.wanted(k); r != nil {
			want.Rows[k.Key] = *r
		}
	}
	if a.have != nil {
		for k, r := range a.have.Rows {
			if o := rowOf(k); a.spares(o) {
				want.Rows[k] = r
			} else if kept := a.wanted(o); kept != nil {
				want.Rows[k] = *kept
			}
		}
	}
	diffLists := a.ranges.Diff(sweep)
	return func(ctx context.Context, vpp link.Caller) (operations []string, err error) {
		state, err := nat44.Read(ctx, vpp)
		if err != nil {
			return nil, err
		}
		for _, op := range nat44.Diff(state, want, sweep) {
			operations = append(operations, op.Describe())
		}
		if diffLists == nil {
			return operations, nil
		}
		held, err := readLists(ctx, vpp)
		if err != nil || held == nil {
			return operations, err
		}
		for _, op := range diffLists(held) {
			operations = append(operations, op.Describe())
		}
		return operations, nil
	}
}

// Rows satisfies render.Adapter.
func (a *adapter) Rows(service string, known bool) (wanted, held []*messages.RowState) {
	plan := a.plans[service]
	if plan == nil {
		return nil, nil
	}
	for _, r := range plan.Claims() {
		is := (*nat44.Row)(nil)
		if a.ranges.Closed(r.Key) {
			continue
		}
		if known {
			is = a.held(rowOf(r.Key))
		}
		if len(r.Locals) > 0 {
			wanted = append(wanted, r.Beside(is).State(false))
		}
		if owner := a.Owner(rowOf(r.Key)); is != nil && (owner == service || owner == "") {
			state := is.State(true)
			state.Draining = a.drainingOf(rowOf(r.Key), is)
			held = append(held, state)
		}
	}
	return wanted, held
}

// Bytes satisfies render.Sizer.
func (a *adapter) Bytes(k object) (wanted, held int) {
	if r := a.wanted(k); r != nil {
		wanted = heap.NAT44().Of(len(r.Locals), false)
	}
	if r := a.held(k); r != nil {
		held = heap.NAT44().Of(len(r.Locals), false)
	}
	return wanted, held
}
