package nat44

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// reading is one reading of VPP.
type reading struct {
	state     *nat44.State
	withLists bool       // the access lists were read
	lists     *acl.State // nil = VPP has none, because the plugin is not loaded
}

func (a *adapter) Forget(restarted bool) {
	if restarted {
		a.drains = newDrains(a.drains.limit)
	}
	a.have, a.external.stale = nil, true
	a.ranges.forget()
	clear(a.rests)
}

// Reader satisfies render.Kind. Access lists are read only if the agent may have some.
func (a *adapter) Reader(known bool) func(context.Context, link.Caller) (any, error) {
	withLists := !known || !a.ranges.known() || a.ranges.needed()
	return func(ctx context.Context, vpp link.Caller) (any, error) {
		state, err := nat44.Read(ctx, vpp)
		if err != nil || !withLists {
			return &reading{state: state}, err
		}
		held, err := readLists(ctx, vpp)
		return &reading{state, true, held}, err
	}
}

// readLists reads the access lists; nil = VPP has none, because the plugin is not loaded.
func readLists(ctx context.Context, vpp link.Caller) (*acl.State, error) {
	held, err := acl.Read(ctx, vpp)
	if errors.Is(err, link.ErrUnsupported) {
		return nil, nil //nolint:nilnil // no access lists is an answer
	}
	return held, err
}

func (a *adapter) Adopt(read any, known bool) (drifted []object, settings int) {
	m := read.(*reading) //nolint:forcetypeassert // Reader made it
	before := a.have
	m.state.Inherit(before)
	a.settings, a.external.stale = false, true
	if before != nil && maps.Equal(before.Foreign, m.state.Foreign) {
		a.have = m.state
	} else {
		a.claims.Change(slices.Collect(a.claims.Keys()), func() { a.have = m.state })
		a.ranges.ownersChanged() // rows of other clients change also where no service has a row
	}
	for _, k := range slices.Concat(a.drains.keys(), slices.Collect(maps.Keys(a.drains.sticky)), slices.Collect(maps.Keys(a.drains.leaving))) {
		a.follow(k, a.held(k))
	}
	for k, r := range a.have.Rows {
		a.follow(rowOf(k), &r)
		if wanted, found := a.claims.Desired(rowOf(k)); found && wanted.Equal(r) { // nearly all
			a.have.Share(wanted)
		}
	}
	a.spread = a.have.Spread(a.config.AllWorkers)
	a.configure(a.planned)
	a.noteAnother()
	if m.withLists {
		availability, strayed := a.ranges.adopt(m.lists)
		if availability {
			services := a.ranges.services()
			a.planAgain(services)
			a.claims.Concern(services...)
		}
		if strayed {
			drifted = append(drifted, missingLists)
		}
		a.claims.Concern(a.ranges.compare()...)
	}
	if known && before != nil {
		for _, k := range render.Drifted(before.Rows, a.have.Rows, nat44.Row.Equal) {
			if !a.doubtful[rowOf(k)] {
				drifted = append(drifted, rowOf(k))
			}
		}
		settings = a.strayed(before)
	}
	clear(a.doubtful)
	return drifted, settings
}

// strayed counts the settings and roles that have to be set again although VPP had them. Addresses
// that NAT44 left behind do not count.
func (a *adapter) strayed(before *nat44.State) (n int) {
	if a.set == nil {
		return 0
	}
	want := a.settingsWanted()
	// roles by operation; VPP may have accepted some and refused the others
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

// Next satisfies render.Kind. An unwanted row that may not be removed yet needs nothing.
func (a *adapter) Next(k object) (s render.Step) {
	if k.part != row {
		return a.nextLists(k)
	}
	want, held := a.wanted(k), a.held(k)
	of := func(r *nat44.Row) int {
		if r == nil {
			return 0
		}
		return heap.NAT44().Of(len(r.Locals)+len(r.Draining), false)
	}
	s.Wanted, s.Bytes, s.Held = want != nil, of(want), of(held)
	if want == nil && a.spares(k) {
		return s
	}
	ops := nat44.DiffRow(held, want)
	if s.Cost = nat44.Cost(ops); s.Cost == 0 {
		return s
	}
	s.Gate, s.Ops = a.gate(k, want, held), render.Boxed(nat44.Part(ops, render.TurnMessages))
	if want != nil && want.Idle() && a.have.Received[k.Addr] && !a.serves(k) {
		// without the address, routes refuse the packets that the row leads back
		s.Ops = append(s.Ops, nat44.Op{Verb: nat44.Withdraw, Addr: k.Addr})
	}
	return s
}

// gate says when a row may be changed: after the access lists that it lacks, so that no excluded
// client gets in. Before the barrier, no row is changed that may belong to another service.
func (a *adapter) gate(k object, want, held *nat44.Row) render.Gate {
	switch {
	case a.another != "":
		return render.Closed
	case a.listsPending() && !a.resting(missingLists), a.ranges.standing.Missing[k.Key] && want != nil:
		return render.Blocked
	case a.around.Phase < render.Passed && (want == nil || a.anothers(want, held)):
		return render.Closed
	}
	return render.Open
}

// nextLists is Next for the two objects of the access lists. Superfluous lists are removed when the
// rows are as wanted.
func (a *adapter) nextLists(k object) (s render.Step) {
	s.Wanted = true
	blocked := !a.ranges.known() || a.resting(k) || k == extraLists && (a.listsPending() || a.rowsPending() > 0)
	switch {
	case a.another != "", k == extraLists && a.around.Phase < render.Passed:
		s.Gate = render.Closed
	case blocked:
		s.Gate = render.Blocked
	}
	if !a.ranges.known() || a.ranges.stale {
		s.Cost = 1
		return s
	}
	ops := a.ranges.additions
	if k == extraLists {
		ops = func(again bool) []acl.Op { return a.ranges.removals(a.rowDirty, again) }
	}
	_, err := a.progress.Refusal(k)
	s.Cost, s.Ops = len(ops(false)), render.Boxed(ops(err != nil))
	return s
}

// objects yields what the agent has in VPP.
func (a *adapter) objects(yield func(object) bool) {
	if a.ranges.needed() && (!yield(missingLists) || !yield(extraLists)) {
		return
	}
	for k := range a.have.Rows {
		if !yield(rowOf(k)) {
			return
		}
	}
}

// listsPending reports whether access lists are being programmed. A refused list holds up only its
// own rows.
func (a *adapter) listsPending() bool {
	_, err := a.progress.Refusal(missingLists)
	return a.progress.Dirty(missingLists) && err == nil
}

// resting reports whether access lists rest (see rests). Refused lists do not rest: the work queue
// delays them.
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

// anothers reports whether a row may belong to another service than the one that wants it now. VPP
// holds a row of another service, or it holds none, several services may claim the address and not
// all have rendered. A change before the barrier could cut connections for nothing, or send clients
// to backends of the wrong service.
func (a *adapter) anothers(want, held *nat44.Row) bool {
	if held == nil {
		return a.around.Phase == render.Rendering && want.Rank >= rule.OfLoadBalancer
	}
	return !want.SameService(held)
}

func (a *adapter) Diff(read any, sweep bool) (operations []render.Difference) {
	m, want := read.(*reading), a.settingsWanted() //nolint:forcetypeassert // Reader made it
	want.Rows = map[rule.Key]nat44.Row{}
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
	for _, op := range nat44.Diff(m.state, want, sweep) {
		d := render.Difference{Text: op.Describe()}
		if op.Key.Port != 0 { // settings have none
			_, held := m.state.Rows[op.Key]
			d.Object, d.Missing = op.Key.String(), op.Verb == nat44.AddRow && !held
		}
		operations = append(operations, d)
	}
	if m.lists != nil {
		for _, op := range a.ranges.diff(m.lists, sweep) {
			operations = append(operations, render.Difference{Text: op.Describe()})
		}
	}
	return operations
}

func (a *adapter) Rows(service string, known bool) (wanted, held []*messages.RowState) {
	plan := a.plans[service]
	if plan == nil {
		return nil, nil
	}
	for _, r := range plan.Claims() {
		is := (*nat44.Row)(nil)
		if a.ranges.closed[r.Key] {
			continue
		}
		if known {
			is = a.held(rowOf(r.Key))
		}
		if len(r.Locals) > 0 {
			wanted = append(wanted, r.Beside(is).State(false))
		}
		if owner := a.claims.Owner(rowOf(r.Key)); is != nil && (owner == service || owner == "") {
			state := is.State(true)
			if len(r.Locals) == 0 && is.Idle() {
				state.Locals = nil // the row leads new connections back to its frontend
			}
			state.Draining = a.drainingOf(rowOf(r.Key), is)
			held = append(held, state)
		}
	}
	return wanted, held
}
