package actors

import (
	"context"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// startBatch sends the operations for the rows in the queue: settings and roles first, removals last. Rows that need none are passed over.
func (r *renderer) startBatch(c *runtime.Context) {
	w := &work{session: r.link.GetSession(), began: c.Now()}
	if r.globals {
		w.ops = nat44.DiffGlobals(r.have, r.globalsWanted())
		if r.globals = len(w.ops) > 0; !r.globals {
			r.interfaces, r.refusedSet, r.refusedWhy = r.set.GetGeneration(), 0, ""
			r.accepted() // what was refused is not wanted any more
		}
	}
	ops, retirements := lastRetire(w.ops)
	w.ops = ops
	var quiet []nat44.Key
	var removals []nat44.Op
	for len(w.ops)+len(removals) < batchRows && len(r.queue) > 0 {
		for _, k := range r.batch(batchRows - len(w.keys)) {
			want := r.wanted(k)
			ops := nat44.DiffRow(r.held(k), want)
			switch {
			case len(ops) == 0 || want == nil && r.spares(k):
				r.clean(k)
				quiet = append(quiet, k)
			case want != nil && r.guard.holds(k):
				r.guard.waiting[k] = true // it stays dirty, and is listed again when what it relies on is in VPP
			case want != nil && (r.passed() || !r.anothers(k, want)):
				w.keys, w.ops = append(w.keys, k), append(w.ops, ops...)
			case want == nil && r.passed():
				w.keys, removals = append(w.keys, k), append(removals, ops...)
			default: // somebody who has not spoken may want it: it stays dirty, and is listed again when the barrier has been passed
			}
		}
	}
	w.ops = slices.Concat(w.ops, removals, retirements)
	nat44.Release(r.have, w.ops)
	r.answerAll(c, quiet)
	if len(w.ops) == 0 {
		if r.pending() == 0 && !r.full.IsZero() {
			r.synced(c, r.full, 0) // VPP held everything already
		}
		return
	}
	r.work = w
	heal(c, r.name, rungKey, r.refusedBefore(w.keys))
	post, caller := c.Post(), r.deps.Link
	c.Go("apply", func(ctx context.Context) { post(&applied{w, nat44.Apply(ctx, caller, w.ops)}) })
}

// lastRetire sets apart what goes after the rows: roles and addresses that are not needed any more. Two kinds of roles go first: a lone inside
// role, because it is dangerous, and those of an interface that becomes an output interface next, because VPP refuses one that still has them.
func lastRetire(globals []nat44.Op) (ops, retirements []nat44.Op) {
	for i, op := range globals {
		becomes := i+1 < len(globals) && globals[i+1].Verb == nat44.AddOutput && globals[i+1].Interface == op.Interface
		if op.Verb == nat44.DelAddress || op.Verb == nat44.DelRoles && op.Roles != nat44.Inside && !becomes {
			retirements = append(retirements, op)
		} else {
			ops = append(ops, op)
		}
	}
	return ops, retirements
}

// globalsWanted are the settings and roles VPP should have. Before the barrier nothing is taken away.
func (r *renderer) globalsWanted() *nat44.Want {
	want := &nat44.Want{Globals: r.planned.Globals(), Interfaces: map[uint32]bool{}}
	want.Retired = r.hairpins
	for _, i := range r.set.GetInterfaces() {
		if needed(i) {
			want.Interfaces[i.GetSwIfIndex()] = true
		} else if i.GetDetached() {
			want.Interfaces[i.GetSwIfIndex()] = false
		}
	}
	r.outside.settings(want, r.set)
	return want
}

// applied books the results of a batch.
func (r *renderer) applied(c *runtime.Context, m *applied) {
	r.work, r.outside.stale = nil, true
	r.journal(c, m)
	if m.session != r.link.GetSession() || r.have == nil {
		return // VPP was away meanwhile, everything is read again
	}
	o := r.noteResults(m)
	r.book(m.keys, o.refused, r.asWanted, c.Now(), r.deps.Timing.Backoff)
	if o.unknown > 0 {
		r.have = nil // some of it may have happened: read back, never trust the cache
	}
	r.probeLater(c, len(r.failed) > 0)
	conclude(c, &r.outlet, o, r.stubborn(m.keys))
	r.synced(c, m.began, r.pending())
	r.answerAll(c, m.keys)
}

// noteResults enters what VPP has done into what it holds.
func (r *renderer) noteResults(m *applied) (o outcome[nat44.Key]) {
	for i := range m.results {
		res := &m.results[i]
		var row *nat44.Key
		if onRow(res.Op) {
			row = &res.Op.Key
		}
		if o.take(row, res.Op, res.Err, res.Unknown) {
			r.have.Record(res.Op)
			continue
		}
		r.have.Suspect(res.Op)
		if res.Op.Verb == nat44.AddRoles || res.Op.Verb == nat44.DelRoles {
			r.rolesFailed(res.Err)
		}
	}
	return o
}

// rolesFailed notes that VPP refused a role; that nothing is known of it is another matter.
func (r *renderer) rolesFailed(err error) {
	if k, _ := classify(err); k == classRetry || k == classAbort {
		r.refusedSet, r.refusedWhy = r.set.GetGeneration(), err.Error()
	}
}

// journal writes down what was done and for whom.
func (r *renderer) journal(c *runtime.Context, m *applied) {
	d := deeds[nat44.Key]{
		object: r.name, method: r.method(), noun: r.noun, cause: r.set.GetCause(), owner: r.beneficiary,
		list: make([]deed[nat44.Key], 0, len(m.results)),
	}
	for i := range m.results {
		res := &m.results[i]
		one := deed[nat44.Key]{text: res.Op.Describe(), err: res.Err}
		if onRow(res.Op) {
			one.of = &res.Op.Key
		}
		if !r.vain(one.of, one.err) {
			d.list = append(d.list, one)
		}
	}
	d.record(c)
}

// beneficiary is the service for which a row is changed, with the generation that asks for it: the owner of the row, or who leaves it.
func (r *renderer) beneficiary(k nat44.Key) (service string, generation uint64) {
	service, _ = r.claims.Owner(k)
	if a := r.accounts[service]; a != nil {
		return service, a.generation
	}
	for _, name := range sortedKeys(r.leaving) {
		if a := r.accounts[name]; a != nil && r.leaving[name][k] {
			return name, a.generation
		}
	}
	return "", 0
}

// onRow reports whether an operation is about one row, not about settings or roles.
func onRow(op nat44.Op) bool { return op.Verb >= nat44.AddRow && op.Verb <= nat44.DelRow }
