package connector

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/connector"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/gate"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/messages"
)

// aggregator compares the services of the sources with the objects in the store.
type aggregator struct {
	deps    *Deps
	store   connector.Store
	order   []string
	inputs  map[string]*input
	passes  *connector.Coalescer
	listed  bool // the store has
	changed bool // input of a comparison has changed since the last one
	count   uint64
	planned *Planned
}

// input is the last state of one source.
type input struct {
	gate   *gate.Gate
	last   *Published
	fresh  bool // not offered to the gate yet
	failed string
}

// pass is posted when a pass is due.
type pass struct{}

// newAggregator returns the actor.
func newAggregator(d *Deps) runtime.Behaviour {
	a := &aggregator{deps: d, inputs: map[string]*input{}, passes: connector.NewCoalescer()}
	for _, s := range d.Sources {
		a.order = append(a.order, s.Name)
		a.inputs[s.Name] = &input{gate: gate.New(d.DeleteLimit, d.Limits.Services)}
	}
	return a
}

// Start satisfies runtime.Behaviour.
func (a *aggregator) Start(c *runtime.Context) {
	post := c.Post()
	c.Go("passes", func(ctx context.Context) { a.passes.Run(ctx, func(context.Context) { post(&pass{}) }) })
	a.ask(c)
	a.publish(c)
	c.Ready()
}

// publish publishes the state every second.
func (a *aggregator) publish(c *runtime.Context) {
	a.deps.Board.aggregator.Store(a.status())
	c.After(time.Second, &publish{})
}

// ask asks the sources and the sink to repeat their state.
func (a *aggregator) ask(c *runtime.Context) {
	c.Send(c.PID(Sink), &again{})
	for _, name := range a.order {
		c.Send(c.PID(Sources+"/"+runtime.EscapeName(name)), &again{})
	}
}

// Receive satisfies runtime.Behaviour.
func (a *aggregator) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Resync:
		a.ask(c)
	case *Opened:
		if a.store != m.Store {
			a.store, a.listed = m.Store, false
		}
		a.trigger()
	case *Changed:
		a.trigger()
	case *Published:
		in := a.inputs[m.Source]
		if in.last != m {
			a.changed = a.changed || in.last == nil || !m.Snapshot.Equal(in.last.Snapshot)
			in.last, in.fresh, in.failed = m, true, ""
		}
		a.passes.Trigger()
	case *Failed:
		a.inputs[m.Source].failed = m.Why
	case *pass:
		a.pass(c)
	case *Confirm:
		in, known := a.inputs[m.Source]
		answer := &Confirmed{Known: known}
		if known {
			answer.Released = in.gate.Confirm()
			a.trigger()
		}
		c.Reply(answer)
	case *publish:
		a.publish(c)
	}
}

// Stop satisfies runtime.Behaviour.
func (*aggregator) Stop(*runtime.Context) {}

// trigger starts a pass.
func (a *aggregator) trigger() {
	a.changed = true
	a.passes.Trigger()
}

// pass compares everything, if something has changed. An unchanged snapshot can still confirm
// deletions that are held back. Before the store has listed its objects, a pass does nothing.
func (a *aggregator) pass(c *runtime.Context) {
	if a.store == nil {
		return
	}
	seen, policy, ok := a.store.Observe()
	if a.listed = ok; !ok {
		return
	}
	options := a.deps.Options
	options.Policy = policy
	owned := map[string][]string{}
	for _, name := range a.order {
		in := a.inputs[name]
		owned[name] = render.Owned(seen, name, options)
		if in.fresh {
			in.fresh = false
			held := in.gate.Status().Held
			in.gate.Offer(in.last.Snapshot, owned[name])
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
			for _, p := range in.last.Snapshot.Problems {
				p.Source = name
				problems = append(problems, p)
			}
		}
		sources = append(sources, catalog.Sourced{Source: name, Services: in.gate.Wanted(owned[name])})
	}
	wanted := render.Render(sources, seen, options)
	changes := render.Diff(wanted, seen, sources, options)
	a.count++
	a.planned = &Planned{Changes: changes, Problems: slices.Concat(problems, wanted.Problems, changes.Problems), Services: len(wanted.Services)}
	c.Send(c.PID(Sink), a.planned)
}

// Status is the state of the sources, for operators.
type Status struct {
	// Listed says that the objects in the store are known.
	Listed bool
	// Settled says that the last comparison was made with the last snapshot of each source.
	Settled bool
	// Passes is how many comparisons were made.
	Passes uint64
	// Sources in their order.
	Sources []SourceStatus
	// Planned is the result of the last comparison; nil before the first. It is read-only.
	Planned *Planned
}

// SourceStatus is the state of one source.
type SourceStatus struct {
	Name string
	// Published is when the last snapshot came; zero = none came.
	Published time.Time
	// Services counts the services of the last snapshot; Complete says that it was complete.
	Services int
	Complete bool
	// Gate has the deletions that are held back.
	Gate gate.Status
	// Failed is why the source does not work; "" = it works.
	Failed string
}

// status describes the sources.
func (a *aggregator) status() *Status {
	out := &Status{Listed: a.listed, Passes: a.count, Planned: a.planned, Settled: a.planned != nil}
	for _, name := range a.order {
		in := a.inputs[name]
		s := SourceStatus{Name: name, Gate: in.gate.Status(), Failed: in.failed}
		if in.last != nil {
			s.Published, s.Services, s.Complete = in.last.At, len(in.last.Snapshot.Services), in.last.Snapshot.Complete
		}
		out.Settled = out.Settled && in.last != nil && !in.fresh
		out.Sources = append(out.Sources, s)
	}
	return out
}

// Inspect satisfies runtime.Inspector.
func (a *aggregator) Inspect() any {
	s := a.status()
	out := map[string]any{"listed": s.Listed, "passes": s.Passes, "sources": s.Sources}
	if s.Planned != nil {
		out["services"], out["problems"], out["differ"] = s.Planned.Services, s.Planned.Problems, len(s.Planned.Changes.Work)
	}
	return out
}
