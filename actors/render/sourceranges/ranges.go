package sourceranges

import (
	"cmp"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Ranges knows which service wants which rules, what they come to together, and what VPP drops of it.
type Ranges struct {
	plans    map[string]*plan                   // services that drop something, or have something to say about it
	keys     map[frontend.Key]map[string]bool   // frontends with rules, and the services that these are of
	leaving  map[string]map[frontend.Key]bool   // services with frontends of which rules may be in VPP that no service wants any more
	changed  map[string]bool                    // services whose rules changed since the last merge
	full     map[string]bool                    // services without room: nothing is dropped for them
	errors   map[string][]*messages.ObjectError // what was wrong with the services when they were put together
	absent   bool                               // VPP has no access lists: nothing is dropped
	stale    bool                               // the rules have to be put together anew
	want     acl.Want                           //
	have     *acl.State                         // nil = unknown
	standing acl.Standing                       // where VPP does not drop exactly what it should
	missing  bool                               // something may be missing in VPP
	extra    bool                               // something may be superfluous in VPP
	news     bool                               // something else is wanted than at the last call of News
	kept     []frontend.Key                     // rows that superfluous rules were left for
}

// plan is what one service wants to be dropped.
type plan struct {
	*acl.ServicePlan
	created   int64
	frontends map[frontend.Key]bool
}

// New returns an empty value; what VPP holds is unknown.
func New() *Ranges {
	return &Ranges{
		plans: map[string]*plan{}, keys: map[frontend.Key]map[string]bool{}, leaving: map[string]map[frontend.Key]bool{},
		changed: map[string]bool{}, full: map[string]bool{}, errors: map[string][]*messages.ObjectError{},
	}
}

// Guarded reports whether what a service wants dropped is, so that its rows may be planned for the other clients.
func (r *Ranges) Guarded(service string) bool { return !r.absent && !r.full[service] }

// Plan takes what a service wants to be dropped; nil = nothing any more.
func (r *Ranges) Plan(service string, view *messages.ServiceView) {
	var now *plan
	if view != nil {
		now = newPlan(view)
		if len(now.Rules)+len(now.Approximations)+len(now.Unrendered)+len(now.Unguarded) == 0 {
			now = nil
		}
	}
	before := r.plans[service]
	if now == nil {
		delete(r.plans, service)
	} else {
		r.plans[service] = now
	}
	if slices.Equal(before.rules(), now.rules()) && (before == nil || now == nil || before.created == now.created) {
		return
	}
	r.changed[service] = true
	for k := range before.about() {
		if delete(r.keys[k], service); len(r.keys[k]) == 0 {
			delete(r.keys, k)
		}
		if r.leaving[service] == nil {
			r.leaving[service] = map[frontend.Key]bool{}
		}
		r.leaving[service][k] = true
	}
	for k := range now.about() {
		if r.keys[k] == nil {
			r.keys[k] = map[string]bool{}
		}
		r.keys[k][service] = true
	}
	r.stale = true
}

func newPlan(view *messages.ServiceView) *plan {
	p := &plan{acl.Plan(view, acl.Config{}), view.GetCreated(), map[frontend.Key]bool{}}
	for _, rule := range p.Rules {
		p.frontends[rule.Key()] = true
	}
	return p
}

// rules are those of the plan, which may be nil.
func (p *plan) rules() []acl.Rule {
	if p == nil {
		return nil
	}
	return p.Rules
}

// about are the frontends of the plan, which may be nil.
func (p *plan) about() map[frontend.Key]bool {
	if p == nil {
		return nil
	}
	return p.frontends
}

// OwnerChanged notes that a frontend may have another owner.
func (r *Ranges) OwnerChanged(k frontend.Key) { r.stale = r.stale || r.keys[k] != nil }

// OwnersChanged notes that any frontend may have another owner.
func (r *Ranges) OwnersChanged() { r.stale = r.stale || len(r.keys) > 0 }

// Stale reports whether the rules have to be put together anew, with Fit and Merge.
func (r *Ranges) Stale() bool { return r.stale }

// Fit finds out for which services there is room, the oldest first, and returns their plans and the services that have gained or lost it.
func (r *Ranges) Fit() (plans []*acl.ServicePlan, moved []string) {
	if !r.absent {
		names := slices.SortedFunc(maps.Keys(r.plans), func(a, b string) int {
			return cmp.Or(cmp.Compare(r.plans[a].created, r.plans[b].created), cmp.Compare(a, b))
		})
		for _, name := range names {
			plans = append(plans, r.plans[name].ServicePlan)
		}
	}
	plans, room := acl.Fit(plans)
	clear(r.errors)
	for _, e := range room.Errors {
		r.errors[e.GetObject()] = append(r.errors[e.GetObject()], e)
	}
	full := map[string]bool{}
	for _, name := range room.Unguarded {
		full[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.plans)) {
		if full[name] != r.full[name] {
			moved = append(moved, name)
		}
	}
	r.full = full
	return plans, moved
}

// Merge puts the rules of the services together; those about the frontends of other owners are left out. It returns the services whose
// acknowledgement may have changed.
func (r *Ranges) Merge(plans []*acl.ServicePlan, owner func(frontend.Key) (string, bool)) []string {
	rules := acl.Merge(plans, owner).Rules
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
func (r *Ranges) recheck() { r.missing, r.extra = true, true }

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

// Interfaces adopts another interface set. Where an interface that has a list of ours is not the same any more, it is not known what VPP holds.
func (r *Ranges) Interfaces(before, now *messages.InterfaceSet) {
	r.want.Interfaces, r.news = acl.Classes(now), true
	r.recheck()
	if r.have == nil || before == nil {
		return
	}
	names := map[uint32]string{}
	for _, i := range now.GetInterfaces() {
		names[i.GetSwIfIndex()] = i.GetName()
	}
	for _, i := range before.GetInterfaces() {
		if _, listed := r.have.Lists[i.GetSwIfIndex()]; listed && names[i.GetSwIfIndex()] != i.GetName() {
			r.have = nil
			return
		}
	}
}

// Needed reports whether there is anything to be done or watched in VPP.
func (r *Ranges) Needed() bool {
	return !r.absent && (r.have == nil || len(r.want.Rules) > 0 || len(r.have.ACLs)+len(r.have.Spare) > 0)
}

// Additions are the operations for what is missing; none when VPP drops everything that it should. What VPP holds must be known.
func (r *Ranges) Additions() []acl.Op {
	if !r.Needed() || !r.missing {
		return nil
	}
	ops := acl.Diff(r.have, &r.want, false)
	r.missing = len(ops) > 0
	return ops
}

// Removals are the operations for what is superfluous, but for rules of rows that are dirty and rely on them. What VPP holds must be known.
func (r *Ranges) Removals(dirty func(frontend.Key) bool) []acl.Op {
	if !r.Needed() || !r.extra {
		return nil
	}
	want := &acl.Want{Rules: r.want.Rules, Interfaces: r.want.Interfaces}
	r.kept = nil
	for _, list := range r.have.ACLs {
		for _, rule := range list.Rules {
			if dirty(rule.Key()) && r.standing.Surplus[rule.Key()] {
				want.Rules, r.kept = append(slices.Clip(want.Rules), rule), append(r.kept, rule.Key())
			}
		}
	}
	want.Rules = acl.Minimal(want.Rules)
	ops := acl.Diff(r.have, want, true)
	r.extra = len(ops) > 0 || len(r.kept) > 0
	return ops
}

// Waiting reports whether superfluous rules were kept for rows of which none is dirty any more.
func (r *Ranges) Waiting(dirty func(frontend.Key) bool) bool {
	return r.extra && len(r.kept) > 0 && !slices.ContainsFunc(r.kept, dirty)
}

// Adopt takes what was read; nil = VPP has no access lists. It reports whether that changes whether anything can be dropped, and whether VPP was
// modified outside of the agent.
func (r *Ranges) Adopt(have *acl.State) (availability, drifted bool) {
	known := r.have != nil && !r.missing
	r.have = have
	r.recheck()
	if availability = r.absent != (have == nil); availability {
		r.absent, r.stale = have == nil, true
	}
	return availability, known && have != nil && len(r.Additions()) > 0
}

// Record enters an operation that VPP has carried out.
func (r *Ranges) Record(op acl.Op) { r.have.Record(op) }

// Services are all services that drop something, ordered.
func (r *Ranges) Services() []string { return slices.Sorted(maps.Keys(r.plans)) }

// Concerned are the services whose acknowledgement depends on whether VPP takes access lists, ordered.
func (r *Ranges) Concerned() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(r.plans)), maps.Keys(r.leaving))
	slices.Sort(names)
	return slices.Compact(names)
}

// Compare compares VPP with what it should drop, and returns the services whose acknowledgement may have changed.
func (r *Ranges) Compare() []string {
	before := r.standing
	switch {
	case r.absent:
		r.standing = acl.Standing{}
	case r.want.Interfaces == nil: // whatever VPP drops, it is not known on which interfaces it should
		r.standing = acl.Compare(nil, &r.want)
	default:
		r.standing = acl.Compare(r.have, &r.want)
	}
	now := r.standing
	services := map[string]bool{}
	for _, change := range []struct{ a, b map[frontend.Key]bool }{
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

// Missing reports whether something that should be dropped in front of a row is not, so that the row has to wait.
func (r *Ranges) Missing(k frontend.Key) bool { return r.standing.Missing[k] }

// Left forgets the frontends of a service of which VPP drops no more than it should, and reports whether there is none left.
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
	maps.DeleteFunc(r.leaving[service], func(k frontend.Key, _ bool) bool { return !r.standing.Surplus[k] })
	if len(r.leaving[service]) == 0 {
		delete(r.leaving, service)
		return true
	}
	return false
}

// Diff returns what would make a state equal to what is wanted; nil where VPP has no access lists or the interfaces are not known.
func (r *Ranges) Diff(sweep bool) func(have *acl.State) []acl.Op {
	if r.absent || r.want.Interfaces == nil {
		return nil
	}
	want := r.want
	return func(have *acl.State) []acl.Op { return acl.Diff(have, &want, sweep) }
}
