package nat44

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// ranges knows the rules of each service, the merged rules, and the access lists in VPP.
type ranges struct {
	config acl.Config

	// Rules of the services: changed by plan, interfaces and another ground.
	plans   map[string]*plan             // services with rules, or with something to report
	keys    map[rule.Key]map[string]bool // services with rules, by frontend
	changed map[string]bool              // services whose rules changed since the last merge
	stale   bool                         // the rules have to be merged again
	// frontends, by service, with rules in VPP that no service may want any more
	leaving map[string]map[rule.Key]bool

	// Desired access lists: changed by fit and merge, and when frontends close.
	want    acl.Want
	news    bool                             // want has changed since the last call of isNew
	refused map[string]*messages.ObjectError // services whose rules VPP cannot have
	closed  map[rule.Key]bool                // frontends whose source ranges cannot be enforced
	closing map[rule.Key]bool                // the same when they are closed next

	// Actual state: changed by adopt, forget, record and compare.
	have     *acl.State   // nil = unknown
	absent   bool         // VPP has no access lists: nothing is dropped
	standing acl.Standing // frontends where VPP does not drop exactly what it should
	missing  bool         // rules may be missing in VPP
	extra    bool         // rules may be superfluous in VPP
	blamed   *acl.Op      // the operation that VPP refused last; nil = none

	// Results of additions and removals, as long as they hold.
	added   []acl.Op
	removed []acl.Op                      // the rules of the rows in kept stay in VPP
	kept    []rule.Key                    // dirty rows
	looked  struct{ added, removed bool } // whether added and removed hold
}

// plan is the rules of one service.
type plan struct {
	*acl.ServicePlan
	created   int64
	frontends map[rule.Key]bool
}

// newRanges returns an empty value; what VPP holds is unknown.
func newRanges(config acl.Config) *ranges {
	return &ranges{
		config: config, plans: map[string]*plan{}, keys: map[rule.Key]map[string]bool{}, leaving: map[string]map[rule.Key]bool{},
		changed: map[string]bool{},
	}
}

// guarded reports whether VPP can enforce the rules of a service, so that its rows may be planned
// for the other clients.
func (r *ranges) guarded(service string) bool { return !r.absent && r.refused[service] == nil }

// plan takes the view of a service; nil = the service is gone.
func (r *ranges) plan(service string, view *messages.ServiceView) {
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

// silent reports whether the plan has no rules and nothing to report.
func (p *plan) silent() bool { return p.Needs+len(p.Approximations)+len(p.Unrendered) == 0 }

// equal reports whether both plans have the same rules.
func (p *plan) equal(other *plan) bool {
	return p.created == other.created && p.Needs == other.Needs && slices.Equal(p.Ranged, other.Ranged) && slices.Equal(p.Closed, other.Closed) &&
		slices.Equal(p.Ranges, other.Ranges) && slices.Equal(p.Drops, other.Drops)
}

// ownerChanged notes that a frontend may have another owner.
func (r *ranges) ownerChanged(k rule.Key) { r.stale = r.stale || r.keys[k] != nil }

// ownersChanged notes that any frontend may have another owner.
func (r *ranges) ownersChanged() { r.stale = r.stale || len(r.keys) > 0 }

// fit returns the plans of the services for which there is room, the services that have gained or
// lost room, and the frontends that close or open.
func (r *ranges) fit() (plans []*acl.ServicePlan, moved []string, turned []rule.Key) {
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

// merge merges the rules of the services. Drops of a service are left out at frontends of other
// owners. It returns the services whose acknowledgement may have changed.
func (r *ranges) merge(plans []*acl.ServicePlan, owner func(rule.Key) (string, bool)) []string {
	rules := acl.Merge(plans, owner)
	r.stale = false
	if !slices.Equal(rules, r.want.Rules) {
		r.want.Rules, r.news = rules, true
		r.recheck()
	}
	services := append(slices.Sorted(maps.Keys(r.changed)), r.compare()...)
	clear(r.changed)
	return services
}

// recheck notes that rules may be missing or superfluous in VPP.
func (r *ranges) recheck() {
	r.missing, r.extra = true, true
	r.looked.added, r.looked.removed = false, false
}

// isNew reports, once, whether the wanted lists have changed since the last call.
func (r *ranges) isNew() bool {
	news := r.news
	r.news = false
	return news
}

// forget notes that the lists in VPP are not known.
func (r *ranges) forget() {
	r.have = nil
	r.recheck()
}

// known reports whether the lists in VPP are known, or not needed.
func (r *ranges) known() bool { return r.absent || r.have != nil }

// interfaces adopts another interface set. If an interface with a list of the agent is replaced,
// the lists in VPP are not known any more.
func (r *ranges) interfaces(before, now *messages.InterfaceSet) {
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

// needed reports whether there are lists to program or to watch.
func (r *ranges) needed() bool {
	return !r.absent && (r.have == nil || len(r.want.Rules) > 0 || len(r.have.ACLs)+len(r.have.Spare) > 0)
}

// additions returns the operations for missing rules; none when VPP has all of them. The state of
// VPP must be known. again says that VPP refused some of them before: then the refused operation
// comes alone.
func (r *ranges) additions(again bool) []acl.Op {
	if !r.needed() || !r.missing {
		return nil
	}
	if !r.looked.added {
		r.added, r.looked.added = acl.Diff(r.have, &r.want, false), true
	}
	r.missing = len(r.added) > 0
	return r.first(r.added, again)
}

// first reduces ops to the operation that VPP refused, if it is tried again.
func (r *ranges) first(ops []acl.Op, again bool) []acl.Op {
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

// removals returns the operations for superfluous rules, without the rules on which dirty rows
// rely. The state of VPP must be known. again is as for additions.
func (r *ranges) removals(dirty func(rule.Key) bool, again bool) []acl.Op {
	if !r.needed() || !r.extra {
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

// with returns the wanted rules, and the rules in VPP of some frontends.
func (r *ranges) with(frontends []rule.Key) []acl.Rule {
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

// waiting reports whether superfluous rules were kept for rows that are not dirty any more.
func (r *ranges) waiting(dirty func(rule.Key) bool) bool {
	return r.extra && len(r.kept) > 0 && !slices.ContainsFunc(r.kept, dirty)
}

// adopt takes a reading; nil = VPP has no access lists. availability reports that VPP has gained or
// lost access lists, drifted that VPP was modified outside of the agent.
func (r *ranges) adopt(have *acl.State) (availability, drifted bool) {
	known := r.have != nil && !r.missing
	r.have = have
	r.recheck()
	if availability = r.absent != (have == nil); availability {
		r.absent, r.stale = have == nil, true
	}
	return availability, known && have != nil && len(r.additions(false)) > 0
}

// record enters an operation that VPP has carried out.
func (r *ranges) record(op acl.Op) {
	r.have.Record(op)
	r.looked.added, r.looked.removed = false, false
}

// services are all services with rules, ordered.
func (r *ranges) services() []string { return slices.Sorted(maps.Keys(r.plans)) }

// concerned are the services whose acknowledgement depends on access lists, ordered.
func (r *ranges) concerned() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(r.plans)), maps.Keys(r.leaving))
	slices.Sort(names)
	return slices.Compact(names)
}

// compare compares the lists in VPP with the wanted rules, and returns the services whose
// acknowledgement may have changed.
func (r *ranges) compare() []string {
	before := r.standing
	switch {
	case r.absent:
		r.standing = acl.Standing{}
	case r.want.Interfaces == nil:
		// the interfaces that need lists are not known
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

// left forgets the frontends of a service without superfluous rules in VPP, and reports whether
// none is left.
func (r *ranges) left(service string) bool {
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

// diff returns the operations that turn a state into the wanted one; none if VPP has no access
// lists or the interfaces are not known.
func (r *ranges) diff(have *acl.State, sweep bool) []acl.Op {
	if r.absent || r.want.Interfaces == nil {
		return nil
	}
	return acl.Diff(have, &r.want, sweep)
}

// acknowledge adds the state of the rules of a service to its acknowledgement. refused is why VPP
// refused access lists; nil = no refusal.
func (r *ranges) acknowledge(ack *messages.RenderAck, service string, refused error) {
	waits := !r.left(service)
	if p := r.plans[service]; p != nil {
		approximations := p.Approximations
		if !r.guarded(service) {
			approximations = p.Unserved
		}
		ack.Approximations = slices.Concat(ack.GetApproximations(), approximations)
		for k := range p.frontends {
			waits = waits || r.guarded(service) && r.standing.Missing[k]
		}
		if e := r.refused[service]; e != nil {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, ""
			render.Unrendered(ack, "not served", []*messages.ObjectError{e})
		}
		render.Unrendered(ack, "not guarded", p.Unrendered)
	}
	waits = waits || r.changed[service] && r.guarded(service)
	switch state := ack.GetState(); {
	case !waits || state == messages.RenderState_RENDER_FAILED:
	case refused != nil:
		ack.State, ack.Error = messages.RenderState_RENDER_FAILED, refused.Error()
	default:
		ack.State = messages.RenderState_RENDER_PENDING
	}
}

// fit divides acl.MaxRules between namespaces as service.Budget does; absent says that VPP has no
// access lists. Within a namespace services get room in the order of the plans, the oldest first.
//
// It returns the plans with room, and an error for each service without. The rules of such a
// service are left out as a whole, because a part of them would admit too many clients.
func fit(plans []*acl.ServicePlan, absent bool) (fitting []*acl.ServicePlan, refused []*messages.ObjectError) {
	budget := service.NewBudget(service.Limits{Service: service.Size{Rules: acl.MaxServiceRules}, Node: service.Size{Rules: acl.MaxRules}})
	for age, plan := range plans {
		budget.Set(plan.Service, int64(age), service.Size{Rules: plan.Needs})
	}
	budget.Settle()
	for _, plan := range plans {
		switch {
		case absent && len(plan.Ranged) == 0:
		case absent:
			refused = append(refused, refusal(plan, "VPP has no access lists, because its ACL plugin is not loaded"))
		case plan.Needs > acl.MaxServiceRules:
			refused = append(refused, refusal(plan, fmt.Sprintf(
				"more than %d rules are needed to drop other clients; use fewer or larger ranges", acl.MaxServiceRules)))
		case budget.Refused(plan.Service) != "":
			namespace, _, _ := strings.Cut(plan.Service, "/")
			refused = append(refused, refusal(plan, fmt.Sprintf(
				"no room for %d rules: older services take the share of namespace %s of the %d that a node may have", plan.Needs, namespace, acl.MaxRules)))
		default:
			fitting = append(fitting, plan)
		}
	}
	return fitting, refused
}

// refusal is the error of a service without rules.
func refusal(plan *acl.ServicePlan, why string) *messages.ObjectError {
	field := "spec"
	if len(plan.Ranged) > 0 {
		field = "spec.loadBalancerSourceRanges"
	}
	return &messages.ObjectError{Source: acl.Renderer, Kind: "Service", Object: plan.Service, Field: field, Message: why}
}
