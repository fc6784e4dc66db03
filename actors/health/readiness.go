package health

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Readiness is published outside of messages, so that /readyz has an answer even when actors hang.
// The healer writes it; any goroutine may read it. The zero value says that the agent is starting.
type Readiness struct{ report atomic.Pointer[Report] }

// Report says whether the node serves what it should, part by part. It is immutable.
type Report struct {
	// Ready is true when every part is OK.
	Ready bool
	// Since is when Ready last changed.
	Since time.Time
	// Parts are ordered by name.
	Parts []Part
}

// Part is the state of one part of the agent.
type Part struct {
	// Name of the part, for example "nat44".
	Name string
	// OK is true when the part does what it should.
	OK bool
	// Reason is why OK is false, one line; with OK, a warning or nothing.
	Reason string
	// Epoch of a renderer; 0 for others.
	Epoch uint64
	// Partial says that the part is not OK because of single objects only, and all other
	// objects are served.
	Partial bool
	// Lost says that VPP forwards nothing; OK is false then.
	Lost bool
	// Waiting is since when the oldest object waits for an answer of VPP; zero = none waits.
	Waiting time.Time
	// AsOf is when the state of the part was last current, while its source does not see
	// changes; zero = it sees changes.
	AsOf time.Time
	// Since is when OK last changed, or when the healer started; zero only before the first
	// report.
	Since time.Time
}

// Load reads the last report; before the first one it says that the agent is starting.
func (r *Readiness) Load() Report {
	if p := r.report.Load(); p != nil {
		return *p
	}
	return Report{Parts: []Part{{Name: "agent", Reason: "starting"}}}
}

func (r *Readiness) store(report Report) { r.report.Store(&report) }

// Reasons joins the reasons of all parts that are not ready; "" = all are ready. A lost VPP comes
// first, and then a lost source of Kubernetes objects: they are the causes of the other reasons.
func (r Report) Reasons() string {
	causes := []string{"watch", "link"}
	parts := slices.DeleteFunc(slices.Clone(r.Parts), func(p Part) bool { return p.OK })
	slices.SortStableFunc(parts, func(a, b Part) int { return slices.Index(causes, b.Name) - slices.Index(causes, a.Name) })
	var reasons []string
	for _, p := range parts {
		reasons = append(reasons, p.Name+": "+p.Reason)
	}
	return strings.Join(reasons, "; ")
}

// Behind is since when VPP lacks something that it should hold; zero = it lacks nothing. Refusals
// of single services do not count, because they have been tried. The parts beside do not count:
// they only know what is wanted.
func (r Report) Behind(beside ...string) time.Time {
	var since time.Time
	for _, p := range r.Parts {
		at := p.Waiting
		if !p.OK && !p.Partial && !slices.Contains(beside, p.Name) {
			at = p.Since
		}
		if !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// LostSince is since when VPP forwards nothing; zero = it forwards. A part that is silent says
// nothing about VPP, so it does not count.
func (r Report) LostSince() time.Time {
	var since time.Time
	for _, p := range r.Parts {
		if p.Lost && (since.IsZero() || p.Since.Before(since)) {
			since = p.Since
		}
	}
	return since
}
