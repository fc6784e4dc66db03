package actors

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// guard knows what has to be dropped in front of the rows, and what VPP drops: which service wants which rules, what they come to together,
// and what of it is missing. It is a value of plain data with pure methods, a part of the ledger: whether a rule counts depends on who owns
// the frontend.
type guard struct {
	config  acl.Config
	plans   map[string]*guarded                // services that drop something, or have something to say about it
	keys    map[nat44.Key]map[string]bool      // frontends with rules, and the services that these are of
	leaving map[string]map[nat44.Key]bool      // services with frontends of which rules may be in VPP that nobody wants any more
	news    map[string]bool                    // services whose rules changed since the last merge
	crowded map[string]bool                    // services for which there is no room: nothing is dropped for them
	errors  map[string][]*messages.ObjectError // what was wrong with the services when they were put together
	absent  bool                               // VPP has no ACLs: nothing is dropped for anybody
	stale   bool                               // the rules have to be put together anew
	want    acl.Want
	have    *acl.State // nil = unknown
	acl.Standing
	dirty   bool               // something may be missing in VPP
	loose   bool               // something may be too much in VPP
	waiting map[nat44.Key]bool // rows that were held up
	err     error              // VPP refused something; nil = it did not the last time
	tries   int
	until   time.Time // not tried again before, unless as a probe
	trial   bool      // one operation is being tried before its time
	turn    int       // which one it is, counted on for ever
}

// guarded is one service.
type guarded struct {
	*acl.ServicePlan
	created int64
	about   map[nat44.Key]bool // frontends with rules
}

func newGuard() *guard {
	return &guard{
		plans: map[string]*guarded{}, keys: map[nat44.Key]map[string]bool{}, leaving: map[string]map[nat44.Key]bool{},
		news: map[string]bool{}, crowded: map[string]bool{}, errors: map[string][]*messages.ObjectError{}, waiting: map[nat44.Key]bool{},
	}
}

// guards reports whether what a service wants dropped is, so that its rows may be planned for the others.
func (g *guard) guards(key string) bool { return !g.absent && !g.crowded[key] }

// put adopts what a service wants to be dropped; nil = nothing any more.
func (g *guard) put(key string, view *messages.ServiceView) {
	var now *guarded
	if view != nil {
		now = newGuarded(view, g.config)
		if len(now.Rules)+len(now.Approximations)+len(now.Unrendered)+len(now.Unguarded) == 0 {
			now = nil
		}
	}
	before := g.plans[key]
	if now == nil {
		delete(g.plans, key)
	} else {
		g.plans[key] = now
	}
	if slices.Equal(before.rules(), now.rules()) && (before == nil || now == nil || before.created == now.created) {
		return
	}
	g.news[key] = true
	for k := range before.frontends() {
		if delete(g.keys[k], key); len(g.keys[k]) == 0 {
			delete(g.keys, k)
		}
		if g.leaving[key] == nil {
			g.leaving[key] = map[nat44.Key]bool{}
		}
		g.leaving[key][k] = true
	}
	for k := range now.frontends() {
		if g.keys[k] == nil {
			g.keys[k] = map[string]bool{}
		}
		g.keys[k][key] = true
	}
	g.stale = true
}

func newGuarded(view *messages.ServiceView, config acl.Config) *guarded {
	p := &guarded{acl.Plan(view, config), view.GetCreated(), map[nat44.Key]bool{}}
	for _, r := range p.Rules {
		p.about[r.Key()] = true
	}
	return p
}

// rules are those of a service that drops something, or of one that does not.
func (p *guarded) rules() []acl.Rule {
	if p == nil {
		return nil
	}
	return p.Rules
}

// frontends are those that the rules are about.
func (p *guarded) frontends() map[nat44.Key]bool {
	if p == nil {
		return nil
	}
	return p.about
}

// touch notes that a frontend may have another owner.
func (g *guard) touch(k nat44.Key) { g.stale = g.stale || g.keys[k] != nil }

// reconsider notes that any frontend may have another owner.
func (g *guard) reconsider() { g.stale = g.stale || len(g.keys) > 0 }

// ordered are the plans in the order of their importance: the oldest service first.
func (g *guard) ordered() []*acl.ServicePlan {
	names := slices.SortedFunc(maps.Keys(g.plans), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.plans[a].created, g.plans[b].created), cmp.Compare(a, b))
	})
	plans := make([]*acl.ServicePlan, len(names))
	for i, name := range names {
		plans[i] = g.plans[name].ServicePlan
	}
	return plans
}

// seat finds out for which services there is room, and returns their plans and the services that have gained or lost it.
func (g *guard) seat() (plans []*acl.ServicePlan, moved []string) {
	if !g.absent {
		plans = g.ordered()
	}
	plans, room := acl.Fit(plans)
	clear(g.errors)
	for _, e := range room.Errors {
		g.errors[e.GetObject()] = append(g.errors[e.GetObject()], e)
	}
	crowded := map[string]bool{}
	for _, name := range room.Unguarded {
		crowded[name] = true
	}
	for _, name := range sortedKeys(g.plans) {
		if crowded[name] != g.crowded[name] {
			moved = append(moved, name)
		}
	}
	g.crowded = crowded
	return plans, moved
}

// merge puts the rules of the services together; those about the frontends of others are left out. It returns the services whose standing
// that changes.
func (g *guard) merge(plans []*acl.ServicePlan, owner func(nat44.Key) (string, bool)) []string {
	g.want.Rules = acl.Merge(plans, owner).Rules
	g.stale = false
	g.changed()
	names := append(sortedKeys(g.news), g.look()...)
	clear(g.news)
	return names
}

// changed notes that VPP may have to drop something else.
func (g *guard) changed() { g.dirty, g.loose = true, true }

// forget notes that it is not known what VPP holds.
func (g *guard) forget() {
	g.have = nil
	g.changed()
}

// enter adopts the interfaces. Where one that has a list of ours is not the same any more, VPP has to be read: it may be another one.
func (g *guard) enter(before, now *messages.InterfaceSet) {
	g.want.Interfaces = acl.Classes(now)
	g.changed()
	if g.have == nil || before == nil {
		return
	}
	names := map[uint32]string{}
	for _, i := range now.GetInterfaces() {
		names[i.GetSwIfIndex()] = i.GetName()
	}
	for _, i := range before.GetInterfaces() {
		if _, listed := g.have.Lists[i.GetSwIfIndex()]; listed && names[i.GetSwIfIndex()] != i.GetName() {
			g.have = nil
			return
		}
	}
}

// needed reports whether there is anything to be done or watched in VPP.
func (g *guard) needed() bool {
	return !g.absent && (g.have == nil || len(g.want.Rules) > 0 || len(g.have.ACLs)+len(g.have.Spare) > 0)
}

// busy reports whether anything is left to be done: what is too much can go only when every service has spoken.
func (g *guard) busy(spoken bool) bool {
	return g.needed() && (g.stale || g.have == nil || g.dirty || g.loose && spoken)
}

// look compares VPP with what it should drop, and returns the services whose standing that changes.
func (g *guard) look() []string {
	before := g.Standing
	switch {
	case g.absent:
		g.Standing = acl.Standing{}
	case g.want.Interfaces == nil: // whatever VPP drops, it is not known on which interfaces it should
		g.Standing = acl.Compare(nil, &g.want)
	default:
		g.Standing = acl.Compare(g.have, &g.want)
	}
	services := map[string]bool{}
	for _, change := range []struct{ a, b map[nat44.Key]bool }{
		{before.Missing, g.Missing}, {g.Missing, before.Missing}, {before.Surplus, g.Surplus}, {g.Surplus, before.Surplus},
	} {
		for k := range change.a {
			if !change.b[k] {
				maps.Copy(services, g.keys[k])
			}
		}
	}
	for name := range g.leaving {
		services[name] = true
	}
	return sortedKeys(services)
}

// holds reports whether a row has to wait because something that should be dropped in front of it is not.
func (g *guard) holds(k nat44.Key) bool { return g.Missing[k] }

// left forgets the frontends of a service of which VPP drops no more than it should, and reports whether there is none left.
func (g *guard) left(key string) bool {
	if g.absent {
		delete(g.leaving, key)
	}
	if len(g.leaving[key]) == 0 {
		return true
	}
	if g.stale || g.have == nil {
		return false
	}
	maps.DeleteFunc(g.leaving[key], func(k nat44.Key, _ bool) bool { return !g.Surplus[k] })
	if len(g.leaving[key]) == 0 {
		delete(g.leaving, key)
		return true
	}
	return false
}

// book enters what VPP has done into what it drops; where that is not certain it is not known any more. It reports whether VPP refused
// something only because something else is not as it was read any more.
func (g *guard) book(results []acl.OpResult) (o outcome[nat44.Key], overtaken bool) {
	overtaken = true
	for i := range results {
		res := &results[i]
		if o.take(nil, res.Op, res.Err, res.Unknown) {
			g.have.Record(res.Op)
		}
		overtaken = overtaken && (res.Err == nil || errors.Is(res.Err, acl.ErrChanged) || errors.Is(res.Err, acl.ErrVanished) ||
			errors.Is(res.Err, acl.ErrNoInterface))
	}
	if o.doubt || o.unknown > 0 || o.failed > 0 && !g.trial {
		g.forget()
	}
	return o, overtaken
}

// fail notes that VPP refused something; it is tried again after a growing delay, which a probe that ends as was to be feared does not change.
func (g *guard) fail(err error, now time.Time, backoff time.Duration) {
	if g.vain(err) {
		g.err, g.trial = err, false
		return
	}
	g.err, g.until, g.trial = err, now.Add(spread(delayAfter(g.tries, backoff), "access lists", g.tries)), false
	g.tries++
}

// vain reports whether a probe has ended as was to be feared, which is no news.
func (g *guard) vain(err error) bool {
	return g.trial && err != nil && mannerOf(err) == mannerOf(g.err)
}

// forgive forgets that VPP refused something.
func (g *guard) forgive() { g.err, g.tries, g.until, g.trial = nil, 0, time.Time{}, false }

// probe has one operation tried before its time.
func (g *guard) probe(now time.Time) {
	if k, _ := classify(g.err); k == classRetry && g.until.After(now) {
		g.trial = true
	}
}

// rests reports whether VPP is left alone, because it has refused something.
func (g *guard) rests(now time.Time) bool { return g.until.After(now) && !g.trial }

// due are the operations that are carried out now: all, or as a probe one after the other of the first ones of one kind, which need none of the
// others.
func (g *guard) due(ops []acl.Op) []acl.Op {
	if !g.trial {
		return ops
	}
	first := 1
	for first < len(ops) && ops[first].Verb == ops[0].Verb {
		first++
	}
	g.turn++
	at := g.turn % first
	return ops[at : at+1]
}

// ack adds what is to be said about the rules of a service.
func (g *guard) ack(ack *messages.RenderAck, key string) {
	waits := !g.left(key)
	if p := g.plans[key]; p != nil {
		said := p.Approximations
		if !g.guards(key) {
			said = p.Unguarded
		}
		ack.Approximations = slices.Concat(ack.GetApproximations(), said)
		for k := range p.frontends() {
			waits = waits || g.guards(key) && g.Missing[k]
		}
		ackUnrendered(ack, "not guarded", g.errors[key])
		ackUnrendered(ack, "not guarded", p.Unrendered)
	}
	waits = waits || g.news[key] && g.guards(key)
	switch state := ack.GetState(); {
	case !waits || state == messages.RenderState_RENDER_FAILED:
	case g.err != nil:
		ack.State, ack.Error = messages.RenderState_RENDER_FAILED, g.err.Error()
	default:
		ack.State = messages.RenderState_RENDER_PENDING
	}
}

// remaining is what VPP should drop when what is too much is taken away: what is wanted, and what the rows still rely on that are not as they
// should be.
func (g *guard) remaining(dirty func(nat44.Key) bool) (want *acl.Want, all bool) {
	want, all = &acl.Want{Rules: g.want.Rules, Interfaces: g.want.Interfaces}, true
	for _, list := range g.have.ACLs {
		for _, r := range list.Rules {
			if dirty(r.Key()) && g.Surplus[r.Key()] {
				want.Rules, all = append(slices.Clip(want.Rules), r), false
			}
		}
	}
	want.Rules = acl.Minimal(want.Rules)
	return want, all
}
