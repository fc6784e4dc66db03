package connector

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/connector/store"
	"github.com/troupe-vpp/troupe/kube/events"
)

// Paths of the actors.
const (
	rootPath       = "connector"
	sinkPath       = rootPath + "/sink"
	aggregatorPath = rootPath + "/aggregator"
	sourcesPath    = rootPath + "/sources"
)

// namedSource is a source with its name, which is in the label of its objects.
type namedSource struct {
	name string
	// make makes the source for each incarnation of its actor.
	make func() (catalog.Source, error)
}

// deps is everything that the actors need. Once the root is spawned it is read-only.
type deps struct {
	sources     []namedSource  // in the order of their priority: the earlier one wins a name
	options     render.Options // without the policy, which the store reports
	limits      catalog.Limits // of one snapshot
	deleteLimit int            // percentage of a source's services that may vanish unconfirmed
	// store makes the store of the objects for each incarnation of the sink.
	store func() store.Store
	// lead competes for the right to write until ctx ends, and calls lead for each term.
	lead   func(ctx context.Context, lead func(term context.Context))
	events events.Recorder // nil = none are recorded; it must not block
	board  *board
}

// tree is the whole connector.
func tree(d *deps) runtime.Spec {
	var sources []runtime.Child
	for _, s := range d.sources {
		sources = append(sources, runtime.Child{
			Name: s.name, Reaction: runtime.ReactIndependent,
			Spec: runtime.Spec{Kind: "source", New: func() runtime.Behaviour { return &source{deps: d, of: s} }},
		})
	}
	return runtime.Ordered("connector", []runtime.Child{
		{Name: "sink", Spec: runtime.Spec{Kind: "sink", New: func() runtime.Behaviour { return newSink(d) }}},
		{Name: "aggregator", Spec: runtime.Spec{Kind: "aggregator", New: func() runtime.Behaviour { return newAggregator(d) }}, Reaction: runtime.ReactResync},
		{Name: "sources", Spec: runtime.Ordered("sources", sources, independent()), Reaction: runtime.ReactResync},
	}, runtime.Policy{
		Budget: 20, Window: 10 * time.Second, BackoffMin: time.Millisecond, BackoffMax: time.Second, Jitter: 0.2, HealthyAfter: time.Minute,
	})
}

// independent is the policy of the sources: a failure concerns only the source itself, however many
// there are.
func independent() runtime.Policy {
	return runtime.Policy{
		Budget: -1, Window: 10 * time.Second, BackoffMin: time.Second, BackoffMax: time.Minute, Jitter: 0.2, HealthyAfter: time.Minute,
	}
}

// published is a clean snapshot of a source.
type published struct {
	source   string
	snapshot catalog.Snapshot
	at       time.Time
}

// CoalesceKey replaces the snapshot before, if that is not handled yet.
func (p *published) CoalesceKey() string { return "published " + p.source }

// failed says that a source cannot work, and why. It is retried.
type failed struct{ source, why string }

// opened tells the aggregator which store the sink has.
type opened struct{ store store.Store }

// CoalesceKey replaces the pending message.
func (*opened) CoalesceKey() string { return "opened" }

// changed says that the store or the leader has changed: a pass is due.
type changed struct{}

// CoalesceKey replaces the pending message.
func (*changed) CoalesceKey() string { return "changed" }

// planned is the complete result of a pass.
type planned struct {
	changes  render.Changes
	problems []catalog.Problem // of sources, names and objects
	services int               // wanted
}

// CoalesceKey replaces the pending message.
func (*planned) CoalesceKey() string { return "planned" }

// confirm lets the deletions of a source that are held back happen, on behalf of an operator. The
// answer is a *confirmed.
type confirm struct{ source string }

// confirmed answers confirm: whether there is such a source, and the names that were held back.
type confirmed struct {
	known    bool
	released []string
}

// again asks a source, or the sink, to repeat its last message to the aggregator.
type again struct{}

// publish is the timer message of the actors that publish.
type publish struct{}

// board has the state that the actors publish every second outside of messages, so that probes have
// an answer even when actors hang. The values are immutable; nil = nothing is known yet.
type board struct {
	aggregator atomic.Pointer[State]
	sink       atomic.Pointer[sinkStatus]
}

// source runs one source, cleans its snapshots and passes them on.
type source struct {
	deps *deps
	of   namedSource
	last *published
}

// snapshot is posted by the goroutine of the source.
type snapshot struct{ catalog.Snapshot }

// CoalesceKey replaces the pending message.
func (*snapshot) CoalesceKey() string { return "snapshot" }

// ended says that the source has returned.
type ended struct{ err error }

func (s *source) Start(c *runtime.Context) {
	defer c.Ready()
	from, err := s.of.make()
	if err != nil {
		c.Fail(err)
		return
	}
	post := c.Post()
	c.Go("source", func(ctx context.Context) {
		err := from.Run(ctx, func(s catalog.Snapshot) { post(&snapshot{s}) })
		if err == nil {
			err = errors.New("the source has ended")
		}
		if ctx.Err() == nil { // otherwise the actor ends
			post(&ended{err})
		}
	})
}

func (s *source) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *snapshot:
		s.last = &published{source: s.of.name, snapshot: catalog.Clean(m.Snapshot, s.deps.limits), at: c.Now()}
		c.Send(c.PID(aggregatorPath), s.last)
	case *ended:
		err := fmt.Errorf("source %s: %w", s.of.name, m.err)
		c.Send(c.PID(aggregatorPath), &failed{s.of.name, m.err.Error()})
		c.Fail(err)
	case *again:
		if s.last != nil {
			c.Send(c.PID(aggregatorPath), s.last)
		}
	}
}

func (*source) Stop(*runtime.Context) {}

func (s *source) Inspect() any {
	if s.last == nil {
		return map[string]any{"published": nil}
	}
	return map[string]any{
		"published": s.last.at, "complete": s.last.snapshot.Complete, "services": len(s.last.snapshot.Services), "problems": s.last.snapshot.Problems,
	}
}
