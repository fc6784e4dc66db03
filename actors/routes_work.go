package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// pump starts the next piece of work, if there is any and VPP is there.
func (r *refuser) pump(c *runtime.Context) {
	switch {
	case r.work != nil || !r.open(c):
	case !r.sure || r.doubts(c):
		r.startRead(c)
	case r.grounded():
		if r.passed() && !r.swept {
			r.sweep(c)
		}
		r.startBatch(c)
		if r.work == nil && r.vigil.due(c.Now()) {
			r.startRead(c)
		}
	}
}

// startRead reads what VPP holds of us, also beneath better routes of others.
func (r *refuser) startRead(c *runtime.Context) {
	w := &routeWork{session: r.link.GetSession(), began: c.Now(), reason: r.reading(r.sure)}
	r.work = w
	post, caller, prefixes := c.Post(), r.deps.Link, r.have.Prefixes(r.claims.Want())
	c.Go("read", func(ctx context.Context) {
		state, err := routes.Read(purpose(ctx, w.reason), caller, prefixes...)
		post(&routesRead{w, state, err})
	})
}

// read adopts what VPP holds and puts every route that differs on the list.
func (r *refuser) read(c *runtime.Context, m *routesRead) {
	r.work = nil
	r.rest(c, m.began)
	if m.session != r.link.GetSession() {
		return
	}
	if errors.Is(m.err, routes.ErrUnsupported) {
		m.state, m.err, r.none = routes.NewState(), nil, true
	}
	if m.err != nil {
		r.readFailed(c, r.sure, m.reason, m.err)
		return
	}
	r.readAccepted()
	before, known := r.have, r.sure
	m.state.Inherit(before)
	r.have, r.sure, r.swept = m.state, true, false
	differing := r.differing()
	differences := len(differing)
	settled := r.relist(differing)
	if known {
		damage := changedRoutes(before, r.have)
		r.damaged = r.damaged || len(damage) > 0
		for _, p := range damage {
			if r.failed[p] != nil {
				r.touch(p)
			}
		}
		differences, settled = len(damage), append(settled, damage...)
	} else {
		r.full = m.began
	}
	if differences > 0 || m.reason != reasonAudit {
		record(c, &messages.Event{
			Kind: "resync", Object: r.name, Method: r.method(),
			Text: fmt.Sprintf("VPP read (%s): %d routes of ours, %d beneath those of others, %d differ", m.reason, len(r.have.Routes), len(r.have.Beneath), differences),
		})
	}
	if known {
		r.drifted(differences)
	}
	c.Send(c.PID(PathIntrospect), &messages.Verified{Renderer: r.name, Epoch: r.epoch, Differences: uint32(differences)})
	if !known || r.retell {
		r.retell = false
		r.tellAll(c)
	} else {
		r.answerAll(c, settled)
	}
}

// differing lists, once each, the prefixes of which VPP does not hold what it should. What nobody wants waits for the barrier, unless its
// service has said that it is gone.
func (r *refuser) differing() []netip.Prefix {
	if r.none {
		return nil
	}
	want := r.claims.Want()
	found := map[netip.Prefix]bool{}
	for _, op := range routes.Diff(r.have, want, true) {
		_, wanted := want[op.Prefix]
		if op.Verb != routes.Register && (wanted || r.passed()) {
			found[op.Prefix] = true
		}
	}
	for _, prefixes := range r.leaving {
		for p := range prefixes {
			if !r.asWanted(p) {
				found[p] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

// changedRoutes lists the prefixes of which VPP does not hold what we knew: somebody else has been there.
func changedRoutes(before, now *routes.State) []netip.Prefix {
	found := map[netip.Prefix]bool{}
	for place, kind := range before.Routes {
		if now.Routes[place] != kind {
			found[place.Prefix] = true
		}
	}
	for place, kind := range now.Routes {
		if before.Routes[place] != kind {
			found[place.Prefix] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), comparePrefixes)
}

// sweep puts everything on the list that VPP holds of us and that nobody wants, and what has waited for everybody to speak.
func (r *refuser) sweep(c *runtime.Context) {
	r.swept = true
	leftovers := map[netip.Prefix]bool{}
	for place := range r.have.Routes {
		if _, wanted := r.claims.Route(place.Prefix); !wanted {
			leftovers[place.Prefix] = true
		}
	}
	for _, p := range slices.Concat(slices.SortedFunc(maps.Keys(leftovers), comparePrefixes), r.unfinished()) {
		r.list(p)
	}
	if !r.opened || len(leftovers) > 0 {
		r.opened = true
		record(c, &messages.Event{
			Kind: "resync", Object: r.name, Method: r.method(),
			Text: fmt.Sprintf("every service has spoken; %d routes of earlier runs are not wanted any more", len(leftovers)),
		})
	}
}

// startBatch sends the operations for the routes in the queue. Those that need none are passed over.
func (r *refuser) startBatch(c *runtime.Context) {
	w := &routeWork{session: r.link.GetSession(), began: c.Now()}
	var quiet []netip.Prefix
	for len(w.prefixes) < batchRoutes && len(r.queue) > 0 {
		for _, p := range r.batch(batchRoutes - len(w.prefixes)) {
			switch {
			case r.asWanted(p):
				r.clean(p)
				quiet = append(quiet, p)
			case r.passed() || r.undisputed(p):
				w.prefixes = append(w.prefixes, p)
			default: // it stays dirty, and is listed again when the barrier has been passed
			}
		}
	}
	r.answerAll(c, quiet)
	if len(w.prefixes) == 0 {
		if r.pending() == 0 && !r.full.IsZero() {
			r.synced(c, r.full, 0) // VPP held everything already
		}
		return
	}
	w.ops = routes.Diff(r.have.Only(w.prefixes...), r.wanted(w.prefixes...), true)
	r.work = w
	heal(c, r.name, rungKey, r.refusedBefore(w.prefixes))
	post, caller := c.Post(), r.deps.Link
	c.Go("apply", func(ctx context.Context) { post(&routesApplied{w, routes.Apply(ctx, caller, w.ops)}) })
}

// undisputed reports whether nobody who has not spoken can object to what is wanted for a prefix: VPP holds nothing of ours there, and it
// is no address that several services may have. That a service has no endpoints is only known when the source has listed them: what the
// local mirror says of services counts for rows, which serve, and not for routes, which refuse.
func (r *refuser) undisputed(p netip.Prefix) bool {
	_, wanted := r.claims.Route(p)
	switch {
	case !wanted || len(r.have.Only(p).Routes) > 0:
		return false
	case r.begun.GetProvisional():
		return len(r.claims.Services(p)) == 0
	default:
		return !r.contested(p)
	}
}

// applied books the results of a batch.
func (r *refuser) applied(c *runtime.Context, m *routesApplied) {
	r.work = nil
	r.journal(c, m)
	if m.session != r.link.GetSession() || !r.sure {
		return // VPP was away meanwhile, everything is read again
	}
	none := r.none
	o := r.noteResults(m)
	r.book(m.prefixes, o.refused, r.asWanted, c.Now(), r.deps.Timing.Backoff)
	if o.unknown > 0 {
		r.sure = false // some of it may have happened: read back
	}
	r.probeLater(c, len(r.failed) > 0)
	conclude(c, &r.outlet, o, r.stubborn(m.prefixes))
	r.synced(c, m.began, r.pending())
	if r.none && !none {
		r.tellAll(c)
	}
	r.answerAll(c, m.prefixes)
}

// noteResults enters what VPP has done into what it holds. That it cannot do what it was asked for is no failure of single routes.
func (r *refuser) noteResults(m *routesApplied) (o outcome[netip.Prefix]) {
	for i := range m.results {
		res := &m.results[i]
		if errors.Is(res.Err, routes.ErrUnsupported) {
			r.none = true
			continue
		}
		var about *netip.Prefix
		if res.Op.Verb != routes.Register {
			about = &res.Op.Prefix
		}
		if o.take(about, res.Op, res.Err, res.Unknown) {
			r.have.Record(res.Op)
		}
	}
	return o
}

// journal writes down what was done and for whom.
func (r *refuser) journal(c *runtime.Context, m *routesApplied) {
	d := deeds[netip.Prefix]{
		object: r.name, method: r.method(), noun: r.noun, cause: r.set.GetCause(), owner: r.beneficiary,
		list: make([]deed[netip.Prefix], 0, len(m.results)),
	}
	for i := range m.results {
		res := &m.results[i]
		one := deed[netip.Prefix]{text: res.Op.Describe(), err: res.Err}
		if res.Op.Verb != routes.Register {
			one.of = &res.Op.Prefix
		}
		if !r.vain(one.of, one.err) {
			d.list = append(d.list, one)
		}
	}
	d.record(c)
}

// beneficiary is the service for which a route is changed, with the generation that asks for it: the first one with a wish for the address,
// or who leaves it.
func (r *refuser) beneficiary(p netip.Prefix) (service string, generation uint64) {
	if names := r.claims.Services(p); len(names) > 0 {
		return names[0], r.accounts[names[0]].generation
	}
	for _, name := range sortedKeys(r.leaving) {
		if a := r.accounts[name]; a != nil && r.leaving[name][p] {
			return name, a.generation
		}
	}
	return "", 0
}

// answerAll tells every service with a wish for one of the addresses where it stands, and those that are leaving.
func (r *refuser) answerAll(c *runtime.Context, prefixes []netip.Prefix) {
	for _, name := range r.concerned(prefixes) {
		r.answer(c, name)
	}
}

// diff compares VPP, read now, with what it should hold.
func (r *refuser) diff(c *runtime.Context) {
	to := r.awaitsDiff(c, r.set)
	if to == nil {
		return
	}
	want, before, sweep, caller, post := r.claims.Want(), r.have, r.passed(), r.deps.Link, c.Post()
	if before != nil {
		before = before.Clone()
	}
	c.Go("diff", func(ctx context.Context) { post(&diffDone{to, compareRoutes(ctx, caller, before, want, sweep)}) })
}

func compareRoutes(ctx context.Context, caller link.Caller, before *routes.State, want routes.Want, sweep bool) *DiffPage {
	state, err := routes.Read(ctx, caller, before.Prefixes(want)...)
	switch {
	case errors.Is(err, routes.ErrUnsupported):
		return &DiffPage{} // it never will be what it should, and says so elsewhere
	case err != nil:
		return &DiffPage{Err: err}
	}
	state.Inherit(before)
	page := &DiffPage{}
	for _, op := range routes.Diff(state, want, sweep) {
		page.Operations = append(page.Operations, op.Describe())
	}
	return page
}
