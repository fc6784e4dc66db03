package connector

import (
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/connector/store"
	"github.com/troupe-vpp/troupe/messages"
)

// aggregator compares the services of the sources with the objects in the store.
type aggregator struct {
	deps    *deps
	store   store.Store
	order   []string
	inputs  map[string]*input
	passes  burst
	listed  bool // the store has
	changed bool // input of a comparison has changed since the last one
	count   uint64
	planned *planned
}

// input is the last state of one source.
type input struct {
	gate   *catalog.Gate
	last   *published
	fresh  bool // not offered to the gate yet
	failed string
}

// pass is the timer message of a pass.
type pass struct{}

// The times of a burst.
const (
	quietPeriod = time.Second     // without a trigger before a pass begins
	longestWait = 5 * time.Second // of a pass for the quiet period
)

// burst turns many triggers into few passes. A pass begins quietPeriod after the last trigger, at
// most longestWait after the first.
type burst struct{ first, last time.Time } // zero first = no pass is due

// wait returns the time until the pass.
func (b *burst) wait(now time.Time) time.Duration {
	return min(b.last.Add(quietPeriod).Sub(now), b.first.Add(longestWait).Sub(now))
}

// newAggregator returns the actor.
func newAggregator(d *deps) runtime.Behaviour {
	a := &aggregator{deps: d, inputs: map[string]*input{}}
	for _, s := range d.sources {
		a.order = append(a.order, s.name)
		a.inputs[s.name] = &input{gate: catalog.NewGate(d.deleteLimit, d.limits.Services)}
	}
	return a
}

func (a *aggregator) Start(c *runtime.Context) {
	a.ask(c)
	a.publish(c)
	c.Ready()
}

// publish publishes the state every second.
func (a *aggregator) publish(c *runtime.Context) {
	a.deps.board.aggregator.Store(a.status())
	c.After(time.Second, &publish{})
}

// ask asks the sources and the sink to repeat their state.
func (a *aggregator) ask(c *runtime.Context) {
	c.Send(c.PID(sinkPath), &again{})
	for _, name := range a.order {
		c.Send(c.PID(sourcesPath+"/"+runtime.EscapeName(name)), &again{})
	}
}

func (a *aggregator) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Resync:
		a.ask(c)
	case *opened:
		if a.store != m.store {
			a.store, a.listed = m.store, false
		}
		a.trigger(c)
	case *changed:
		a.trigger(c)
	case *published:
		in := a.inputs[m.source]
		if in.last != m {
			a.changed = a.changed || in.last == nil || !m.snapshot.Equal(in.last.snapshot)
			in.last, in.fresh, in.failed = m, true, ""
		}
		a.soon(c)
	case *failed:
		a.inputs[m.source].failed = m.why
	case *pass:
		if wait := a.passes.wait(c.Now()); wait > 0 {
			c.After(wait, &pass{})
			return
		}
		a.passes = burst{}
		a.pass(c)
	case *confirm:
		in, known := a.inputs[m.source]
		answer := &confirmed{known: known}
		if known {
			answer.released = in.gate.Confirm()
			a.trigger(c)
		}
		c.Reply(answer)
	case *publish:
		a.publish(c)
	}
}

func (*aggregator) Stop(*runtime.Context) {}

// trigger makes a pass compare everything.
func (a *aggregator) trigger(c *runtime.Context) {
	a.changed = true
	a.soon(c)
}

// soon notes that a pass is due. There is at most one timer.
func (a *aggregator) soon(c *runtime.Context) {
	a.passes.last = c.Now()
	if a.passes.first.IsZero() {
		a.passes.first = a.passes.last
		c.After(quietPeriod, &pass{})
	}
}

// pass compares everything, if something has changed. An unchanged snapshot can still confirm
// deletions that are held back. Before the store has listed its objects, a pass does nothing.
func (a *aggregator) pass(c *runtime.Context) {
	if a.store == nil {
		return
	}
	seen, policy, ok := a.store.Observe()
	a.listed = ok
	if !ok {
		return
	}
	options := a.deps.options
	options.Policy = policy
	owned := map[string][]string{}
	for _, name := range a.order {
		in := a.inputs[name]
		owned[name] = render.Owned(seen, name, options)
		if in.fresh {
			in.fresh = false
			held := in.gate.Status().Held
			in.gate.Offer(in.last.snapshot, owned[name])
			a.changed = a.changed || !slices.Equal(in.gate.Status().Held, held)
		}
	}
	if !a.changed {
		return
	}
	a.changed = false
	var sources []catalog.Sourced
	var problems []catalog.Problem
	for _, name := range a.order {
		in := a.inputs[name]
		if in.last != nil {
			for _, p := range in.last.snapshot.Problems {
				p.Source = name
				problems = append(problems, p)
			}
		}
		sources = append(sources, catalog.Sourced{Source: name, Services: in.gate.Wanted(owned[name])})
	}
	wanted := render.Render(sources, seen, options)
	changes := render.Diff(wanted, seen, sources, options)
	a.count++
	a.planned = &planned{changes: changes, problems: slices.Concat(problems, wanted.Problems, changes.Problems), services: len(wanted.Services)}
	c.Send(c.PID(sinkPath), a.planned)
}

// status describes the sources.
func (a *aggregator) status() *State {
	out := &State{Listed: a.listed, passes: a.count, planned: a.planned, settled: a.planned != nil}
	if p := a.planned; p != nil {
		out.Services, out.Pending = p.services, len(p.changes.Work)
	}
	for _, name := range a.order {
		in := a.inputs[name]
		out.settled = out.settled && in.last != nil && !in.fresh
		out.Sources = append(out.Sources, in.state(name))
	}
	return out
}

// state describes the source.
func (in *input) state(name string) SourceState {
	gate := in.gate.Status()
	out := SourceState{
		Name: name, Known: gate.Complete && in.failed == "", Reason: in.failed,
		Held: append([]string{}, gate.Held...), Missing: gate.Missing, Waiting: gate.Waiting,
	}
	if in.last != nil {
		out.Published, out.Services = in.last.at, len(in.last.snapshot.Services)
		out.Complete = in.last.snapshot.Complete && in.failed == ""
	}
	switch {
	case in.failed != "":
	case in.last == nil:
		out.Reason = "it has not answered"
	case !gate.Complete:
		out.Reason = "no complete answer yet: nothing is deleted"
	case !out.Complete:
		out.Reason = "the last answer is not complete: nothing is deleted"
	}
	return out
}

func (a *aggregator) Inspect() any {
	s := a.status()
	out := map[string]any{"listed": s.Listed, "passes": s.passes, "sources": s.Sources}
	if p := s.planned; p != nil {
		out["services"], out["problems"], out["differ"] = s.Services, p.problems, s.Pending
	}
	return out
}
