package sourceranges

import (
	"cmp"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Ranges knows which service wants which rules, what they come to together, and what VPP drops of
// it.
type Ranges struct {
	config acl.Config

	// Rules of the services: changed by Plan, SetGround and Interfaces.
	// those that drop something, or have something to say about it
	plans map[string]*plan
	// frontends with rules, and the services that these are of
	keys    map[rule.Key]map[string]bool
	changed map[string]bool // services whose rules changed since the last merge
	stale   bool            // the rules have to be put together anew
	// services with frontends of which rules may be in VPP that no service wants any more
	leaving map[string]map[rule.Key]bool

	// Desired access lists: changed by Fit, Close and Merge.
	want acl.Want
	// something else is wanted than at the last call of News
	news    bool
	refused map[string]*messages.ObjectError // services whose rules VPP cannot have, and why
	// not served, because their source ranges cannot be enforced
	closed  map[rule.Key]bool
	closing map[rule.Key]bool // keys whose rows Close adopts

	// Actual state: changed by Adopt, Forget, Record and Compare.
	have     *acl.State   // nil = unknown
	absent   bool         // VPP has no access lists: nothing is dropped
	standing acl.Standing // where VPP does not drop exactly what it should
	missing  bool         // something may be missing in VPP
	extra    bool         // something may be superfluous in VPP
	blamed   *acl.Op      // the operation that VPP refused last; nil = none

	// Results of Additions and Removals, as long as they hold.
	added   []acl.Op
	removed []acl.Op                      // with the rules of these rows left in VPP:
	kept    []rule.Key                    //
	looked  struct{ added, removed bool } // whether they need not
}

// plan is what one service wants to be dropped.
type plan struct {
	*acl.ServicePlan
	created   int64
	frontends map[rule.Key]bool
}

// New returns an empty value; what VPP holds is unknown.
func New(config acl.Config) *Ranges {
	return &Ranges{
		config: config, plans: map[string]*plan{}, keys: map[rule.Key]map[string]bool{}, leaving: map[string]map[rule.Key]bool{},
		changed: map[string]bool{},
	}
}

// Guarded reports whether VPP can drop what a service wants dropped, so that its rows may be
// planned for the other clients.
func (r *Ranges) Guarded(service string) bool { return !r.absent && r.refused[service] == nil }

// Absent reports whether VPP has no access lists, because its ACL plugin is not loaded.
func (r *Ranges) Absent() bool { return r.absent }

// Closed reports whether a frontend must not be served, by any service, because source ranges for
// it cannot be enforced.
func (r *Ranges) Closed(k rule.Key) bool { return r.closed[k] }

// AnyClosed reports whether there is such a frontend.
func (r *Ranges) AnyClosed() bool { return len(r.closed) > 0 }

// SetGround takes other addresses of hosts. The services that they concern have to be planned
// again.
func (r *Ranges) SetGround(ground rule.Ground) { r.config.Ground = ground }

// Plan takes what a service wants to be dropped; nil = nothing any more.
func (r *Ranges) Plan(service string, view *messages.ServiceView) {
	nothing := &plan{ServicePlan: &acl.ServicePlan{}}
	before, now := r.plans[service], nothing
	if before == nil {
		before = nothing
	}
	if view != nil {
		now = newPlan(view, r.config)
	}
	if r.plans[service] = now; now.silent() {
		delete(r.plans, service)
		now = nothing
	}
	if before.equal(now) {
		return
	}
	r.changed[service], r.stale = true, true
	for k := range before.frontends {
		if delete(r.keys[k], service); len(r.keys[k]) == 0 {
			delete(r.keys, k)
		}
		if r.leaving[service] == nil {
			r.leaving[service] = map[rule.Key]bool{}
		}
		r.leaving[service][k] = true
	}
	for k := range now.frontends {
		if r.keys[k] == nil {
			r.keys[k] = map[string]bool{}
		}
		r.keys[k][service] = true
	}
}

func newPlan(view *messages.ServiceView, config acl.Config) *plan {
	p := &plan{acl.Plan(view, config), view.GetCreated(), map[rule.Key]bool{}}
	for _, rule := range p.Drops {
		p.frontends[rule.Key()] = true
	}
	for _, k := range slices.Concat(p.Ranged, p.Closed) {
		p.frontends[k] = true
	}
	return p
}

// silent reports whether there is nothing to drop and nothing to say.
func (p *plan) silent() bool { return p.Needs+len(p.Approximations)+len(p.Unrendered) == 0 }

// equal reports whether both plans come to the same rules.
func (p *plan) equal(other *plan) bool {
	return p.created == other.created && p.Needs == other.Needs && slices.Equal(p.Ranged, other.Ranged) && slices.Equal(p.Closed, other.Closed) &&
		slices.Equal(p.Ranges, other.Ranges) && slices.Equal(p.Drops, other.Drops)
}

// OwnerChanged notes that a frontend may have another owner.
func (r *Ranges) OwnerChanged(k rule.Key) { r.stale = r.stale || r.keys[k] != nil }

// OwnersChanged notes that any frontend may have another owner.
func (r *Ranges) OwnersChanged() { r.stale = r.stale || len(r.keys) > 0 }

// Stale reports whether the rules have to be put together anew, with Fit and Merge.
func (r *Ranges) Stale() bool { return r.stale }

// Fit finds out for which services there is room, and returns their plans, the services that have
// gained or lost it, and the frontends that Close closes or opens.
func (r *Ranges) Fit() (plans []*acl.ServicePlan, moved []string, turned []rule.Key) {
	names := slices.SortedFunc(maps.Keys(r.plans), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.plans[a].created, r.plans[b].created), cmp.Compare(a, b))
	})
	for _, name := range names {
		plans = append(plans, r.plans[name].ServicePlan)
	}
	before := r.refused
	r.refused, r.closing = map[string]*messages.ObjectError{}, map[rule.Key]bool{}
	for _, plan := range plans {
		for _, k := range plan.Closed {
			r.closing[k] = true
		}
	}
	plans, refused := fit(plans, r.absent)
	for _, e := range refused {
		r.refused[e.GetObject()] = e
		for _, k := range r.plans[e.GetObject()].Ranged {
			r.closing[k] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.plans)) {
		if (before[name] == nil) != (r.refused[name] == nil) {
			moved = append(moved, name)
		}
	}
	for _, pair := range [][2]map[rule.Key]bool{{r.closed, r.closing}, {r.closing, r.closed}} {
		for k := range pair[0] {
			if !pair[1][k] {
				turned = append(turned, k)
			}
		}
	}
	return plans, moved, turned
}

// Close closes the frontends that Fit has found not to be enforceable, and opens the others.
func (r *Ranges) Close() { r.closed = r.closing }

// Merge puts the rules of the services together; what a service drops is left out at the frontends
// of other owners. It returns the services whose acknowledgement may have changed.
func (r *Ranges) Merge(plans []*acl.ServicePlan, owner func(rule.Key) (string, bool)) []string {
	rules := acl.Merge(plans, owner)
	r.stale = false
	if !slices.Equal(rules, r.want.Rules) {
		r.want.Rules, r.news = rules, true
		r.recheck()
	}
	services := append(slices.Sorted(maps.Keys(r.changed)), r.Compare()...)
	clear(r.changed)
	return services
}

// recheck notes that VPP may not drop what it should.
func (r *Ranges) recheck() {
	r.missing, r.extra = true, true
	r.looked.added, r.looked.removed = false, false
}

// News reports, once, whether something else is wanted than at the last call.
func (r *Ranges) News() bool {
	news := r.news
	r.news = false
	return news
}

// Forget notes that it is not known what VPP holds.
func (r *Ranges) Forget() {
	r.have = nil
	r.recheck()
}

// Known reports whether it is known what VPP holds, or not needed.
func (r *Ranges) Known() bool { return r.absent || r.have != nil }

// Interfaces adopts another interface set. Where an interface that has a list of ours is not the
// same any more, it is not known what VPP holds.
func (r *Ranges) Interfaces(before, now *messages.InterfaceSet) {
	r.want.Interfaces, r.news = acl.Classes(now), true
	r.recheck()
	if r.have == nil || before == nil {
		return
	}
	for _, index := range render.Replaced(before, now) {
		if _, listed := r.have.Lists[index]; listed {
			r.have = nil
			return
		}
	}
}

// Needed reports whether there is anything to be done or watched in VPP.
func (r *Ranges) Needed() bool {
	return !r.absent && (r.have == nil || len(r.want.Rules) > 0 || len(r.have.ACLs)+len(r.have.Spare) > 0)
}

// Additions are the operations for what is missing; none when VPP drops everything that it should.
// The state of VPP must be known. again says that VPP refused them before: then the refused one
// comes alone.
func (r *Ranges) Additions(again bool) []acl.Op {
	if !r.Needed() || !r.missing {
		return nil
	}
	if !r.looked.added {
		r.added, r.looked.added = acl.Diff(r.have, &r.want, false), true
	}
	r.missing = len(r.added) > 0
	return r.first(r.added, again)
}

// first leaves the access list alone that VPP refused, if there is one and it is tried again.
func (r *Ranges) first(ops []acl.Op, again bool) []acl.Op {
	if r.blamed == nil || !again {
		return ops
	}
	at := slices.IndexFunc(ops, func(op acl.Op) bool {
		return op.Verb == r.blamed.Verb && op.Tag == r.blamed.Tag && (op.Verb == acl.Create || op.Verb == acl.Replace)
	})
	if at < 0 {
		return ops
	}
	return ops[at : at+1]
}

// Removals are the operations for what is superfluous, but for rules of rows that are dirty and
// rely on them. What VPP holds must be known. again is as for Additions.
func (r *Ranges) Removals(dirty func(rule.Key) bool, again bool) []acl.Op {
	if !r.Needed() || !r.extra {
		return nil
	}
	var kept []rule.Key
	for k := range r.standing.Surplus {
		if dirty(k) {
			kept = append(kept, k)
		}
	}
	slices.SortFunc(kept, rule.Key.Compare)
	if !r.looked.removed || !slices.Equal(kept, r.kept) {
		r.kept, r.looked.removed = kept, true
		r.removed = acl.Diff(r.have, &acl.Want{Rules: r.with(kept), Interfaces: r.want.Interfaces}, true)
	}
	r.extra = len(r.removed) > 0 || len(r.kept) > 0
	return r.first(r.removed, again)
}

// with are the wanted rules and those in VPP of some frontends.
func (r *Ranges) with(frontends []rule.Key) []acl.Rule {
	if len(frontends) == 0 {
		return r.want.Rules
	}
	rules := slices.Clone(r.want.Rules)
	for _, list := range r.have.ACLs {
		for _, r := range list.Rules {
			if _, kept := slices.BinarySearchFunc(frontends, r.Key(), rule.Key.Compare); kept {
				rules = append(rules, r)
			}
		}
	}
	return acl.Minimal(rules)
}

// Waiting reports whether superfluous rules were kept for rows of which none is dirty any more.
func (r *Ranges) Waiting(dirty func(rule.Key) bool) bool {
	return r.extra && len(r.kept) > 0 && !slices.ContainsFunc(r.kept, dirty)
}

// Adopt takes what was read; nil = VPP has no access lists. It reports whether that changes whether
// anything can be dropped, and whether VPP was modified outside of the agent.
func (r *Ranges) Adopt(have *acl.State) (availability, drifted bool) {
	known := r.have != nil && !r.missing
	r.have = have
	r.recheck()
	if availability = r.absent != (have == nil); availability {
		r.absent, r.stale = have == nil, true
	}
	return availability, known && have != nil && len(r.Additions(false)) > 0
}

// Record enters an operation that VPP has carried out.
func (r *Ranges) Record(op acl.Op) {
	r.have.Record(op)
	r.looked.added, r.looked.removed = false, false
}

// Refused notes the first operation of several that VPP refused; nil = none.
func (r *Ranges) Refused(op *acl.Op) { r.blamed = op }

// Services are all services that drop something, ordered.
func (r *Ranges) Services() []string { return slices.Sorted(maps.Keys(r.plans)) }

// Concerned are the services whose acknowledgement depends on whether VPP takes access lists,
// ordered.
func (r *Ranges) Concerned() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(r.plans)), maps.Keys(r.leaving))
	slices.Sort(names)
	return slices.Compact(names)
}

// Compare compares VPP with what it should drop, and returns the services whose acknowledgement may
// have changed.
func (r *Ranges) Compare() []string {
	before := r.standing
	switch {
	case r.absent:
		r.standing = acl.Standing{}
	case r.want.Interfaces == nil:
		// it is not known on which interfaces VPP should drop
		r.standing = acl.Compare(nil, &r.want)
	default:
		r.standing = acl.Compare(r.have, &r.want)
	}
	now := r.standing
	services := map[string]bool{}
	for _, change := range []struct{ a, b map[rule.Key]bool }{
		{before.Missing, now.Missing}, {now.Missing, before.Missing}, {before.Surplus, now.Surplus}, {now.Surplus, before.Surplus},
	} {
		for k := range change.a {
			if !change.b[k] {
				maps.Copy(services, r.keys[k])
			}
		}
	}
	for name := range r.leaving {
		services[name] = true
	}
	return slices.Sorted(maps.Keys(services))
}

// Missing reports whether something that should be dropped in front of a row is not, so that the
// row has to wait.
func (r *Ranges) Missing(k rule.Key) bool { return r.standing.Missing[k] }

// Left forgets the frontends of a service of which VPP drops no more than it should, and reports
// whether there is none left.
func (r *Ranges) Left(service string) bool {
	if r.absent {
		delete(r.leaving, service)
	}
	if len(r.leaving[service]) == 0 {
		return true
	}
	if r.stale || r.have == nil {
		return false
	}
	maps.DeleteFunc(r.leaving[service], func(k rule.Key, _ bool) bool { return !r.standing.Surplus[k] })
	if len(r.leaving[service]) == 0 {
		delete(r.leaving, service)
		return true
	}
	return false
}

// Diff is what would make a state equal to what is wanted; nothing where VPP has no access lists or
// the interfaces are not known.
func (r *Ranges) Diff(have *acl.State, sweep bool) []acl.Op {
	if r.absent || r.want.Interfaces == nil {
		return nil
	}
	return acl.Diff(have, &r.want, sweep)
}
