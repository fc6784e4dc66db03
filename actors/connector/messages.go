package connector

import (
	"time"

	"github.com/troupe-vpp/troupe/kube/connector"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
)

// Published is a clean snapshot of a source.
type Published struct {
	Source   string
	Snapshot catalog.Snapshot
	At       time.Time
}

// CoalesceKey replaces the snapshot before, if that is not handled yet.
func (p *Published) CoalesceKey() string { return "published " + p.Source }

// Failed says that a source cannot work, and why. It is retried.
type Failed struct {
	Source, Why string
}

// Opened tells the aggregator which store the sink has.
type Opened struct{ Store connector.Store }

// CoalesceKey replaces the pending message.
func (*Opened) CoalesceKey() string { return "opened" }

// Changed says that the store or the leader has changed: a pass is due.
type Changed struct{}

// CoalesceKey replaces the pending message.
func (*Changed) CoalesceKey() string { return "changed" }

// Planned is the complete result of a pass.
type Planned struct {
	Changes render.Changes
	// Problems of sources, names and objects.
	Problems []catalog.Problem
	// Services counts the wanted services.
	Services int
}

// CoalesceKey replaces the pending message.
func (*Planned) CoalesceKey() string { return "planned" }

// Confirm lets the deletions of a source that are held back happen, on behalf of an operator. The
// answer is a *Confirmed.
type Confirm struct{ Source string }

// Confirmed answers Confirm.
type Confirmed struct {
	// Known says that there is such a source.
	Known bool
	// Released are the names that were held back.
	Released []string
}

// again asks a source, or the sink, to repeat its last message to the aggregator.
type again struct{}
