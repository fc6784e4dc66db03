package connector

import (
	"context"
	"log/slog"
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
	// Name is in the label of the source's objects, unique and stable.
	Name string
	// New makes the source for each incarnation of its actor.
	New func() (connector.Source, error)
}

// Deps is everything that the bootstrap gives to the connector. Once the root is spawned it is
// read-only.
type Deps struct {
	// Sources in the order of their priority: the earlier one wins a name that several have.
	Sources []Source
	// Options of the objects, except the policy, which the store reports.
	Options render.Options
	// Limits of one snapshot.
	Limits catalog.Limits
	// DeleteLimit is the percentage of a source's services that may vanish without
	// confirmation.
	DeleteLimit int
	// Store makes the store of the objects for each incarnation of the sink.
	Store func() connector.Store
	// Lead competes for the right to write until ctx ends, and calls lead for each term; nil =
	// this is the only connector.
	Lead func(ctx context.Context, lead func(term context.Context))
	// Events records Kubernetes Events; nil = none are recorded. It must not block.
	Events events.Recorder
	// Board is where the actors publish their state for operators; never nil.
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
