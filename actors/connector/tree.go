package connector

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/connector"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/events"
)

// Paths of the actors.
const (
	Root       = "connector"
	Sink       = Root + "/sink"
	Aggregator = Root + "/aggregator"
	Sources    = Root + "/sources"
)

// Source is a source with its name.
type Source struct {
	// Name is in the label of its objects, unique and stable.
	Name string
	// New makes it for each incarnation of its actor.
	New func() (connector.Source, error)
}

// Deps is everything the connector is given. It is read-only once the root is spawned.
type Deps struct {
	// Sources in the order of their priority: where names collide, the earlier one has it.
	Sources []Source
	// Options of the objects; the policy is that of the store.
	Options render.Options
	// Limits of one snapshot.
	Limits catalog.Limits
	// DeleteLimit is the percentage of a source's services that may vanish without confirmation.
	DeleteLimit int
	// Store makes the place where the objects are, for each incarnation of the sink.
	Store func() connector.Store
	// Lead competes for the right to write until ctx ends, and calls lead for each term; nil = this
	// is the only connector.
	Lead func(ctx context.Context, lead func(term context.Context))
	// Events records Kubernetes Events; nil = none are recorded. It must not block.
	Events events.Recorder
	// Board is where the actors publish what operators look at; never nil.
	Board *Board
	// Log is never nil.
	Log *slog.Logger
}

// Tree is the whole connector.
func Tree(d *Deps) runtime.Spec {
	var sources []runtime.Child
	for _, s := range d.Sources {
		sources = append(sources, runtime.Child{
			Name: s.Name, Reaction: runtime.ReactIndependent,
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

// Board holds what the actors publish once a second outside of messages, so that probes have an
// answer even when actors hang. Any goroutine may read it; the values are immutable.
type Board struct {
	aggregator atomic.Pointer[Status]
	sink       atomic.Pointer[SinkStatus]
}

// Sources returns the state of the sources; nil = nothing is known yet.
func (b *Board) Sources() *Status { return b.aggregator.Load() }

// Sink returns the state of the writes; nil = nothing is known yet.
func (b *Board) Sink() *SinkStatus { return b.sink.Load() }

// publish is what the actors post to themselves when it is time to publish.
type publish struct{}

// Published is a clean snapshot of a source.
type Published struct {
	Source   string
	Snapshot catalog.Snapshot
	At       time.Time
}

// CoalesceKey replaces the snapshot before, if that is not handled yet.
func (p *Published) CoalesceKey() string { return "published " + p.Source }

// Failed says that a source cannot work, and why; it is tried again.
type Failed struct {
	Source, Why string
}

// Opened tells the aggregator which store the sink has.
type Opened struct{ Store connector.Store }

// CoalesceKey replaces the one before.
func (*Opened) CoalesceKey() string { return "opened" }

// Changed says that the store, or who leads, has changed: a pass is due.
type Changed struct{}

// CoalesceKey replaces the one before.
func (*Changed) CoalesceKey() string { return "changed" }

// Planned is what a pass found, all of it.
type Planned struct {
	Changes render.Changes
	// Problems of sources, names and objects.
	Problems []catalog.Problem
	// Services is how many are wanted.
	Services int
}

// CoalesceKey replaces the one before.
func (*Planned) CoalesceKey() string { return "planned" }

// Confirm is the word of an operator that what is held back of a source may be deleted. The answer
// is a *Confirmed.
type Confirm struct{ Source string }

// Confirmed answers Confirm.
type Confirmed struct {
	// Known says that there is such a source.
	Known bool
	// Released are the names that were held back.
	Released []string
}

// again asks a source, or the sink, to repeat what it last told the aggregator.
type again struct{}
