package api

import "time"

// Resync is the progress of the renderers, and repairs.
type Resync struct {
	// Renderers are ordered by name.
	Renderers []RendererSync `json:"renderers"`
	// Healing counts the escalation steps, ordered by part and step.
	Healing []HealingCount `json:"healing"`
	// Ill are the unhealthy parts, ordered by name.
	Ill []IllPart `json:"ill"`
}

// LastRead is when the renderer that was read least recently was read; zero = one of them was not.
func (r *Resync) LastRead() (last time.Time) {
	for i := range r.Renderers {
		if read := r.Renderers[i].Read; i == 0 || read.Before(last) {
			last = read
		}
	}
	return last
}

// HealingCount counts the repairs of a part by one escalation step.
type HealingCount struct {
	Part string `json:"part" column:"PART"`
	// Rung is the escalation step: key, object, downstream, full, subtree or exit.
	Rung  string `json:"rung" column:"STEP"`
	Count uint64 `json:"count" column:"COUNT"`
}

// IllPart is an unhealthy part that escalation steps may repair.
type IllPart struct {
	Part string `json:"part" column:"PART"`
	// Since is when the part became unhealthy, Next the time of the next escalation step.
	Since time.Time `json:"since" column:"SINCE,ago"`
	Next  time.Time `json:"next" column:"NEXT"`
	// Rung is the latest escalation step; "none" = none yet.
	Rung   string `json:"rung" column:"LAST STEP"`
	Reason string `json:"reason" column:"REASON" tone:"bad"`
}

// RendererSync is the state of one renderer.
type RendererSync struct {
	Renderer string `json:"renderer" column:"RENDERER" link:"/actors/agent/dataplane/"`
	// Epoch counts its starts.
	Epoch uint64 `json:"epoch" column:"EPOCH"`
	// InSync is true if VPP is in the desired state as far as the renderer knows.
	InSync bool `json:"inSync" column:"IN SYNC" tone:"bad"`
	// Read is when the latest reading of VPP began, left out before the first. Because is its
	// reason, Differences the number of objects and settings that differed.
	Read        time.Time `json:"read,omitzero" column:"VPP READ,ago"`
	Because     string    `json:"because,omitempty" column:"BECAUSE"`
	Differences uint32    `json:"differences" column:"DIFFERED"`
	// Reason is why it is not in sync, or a warning.
	Reason string `json:"reason,omitempty" column:"REASON"`
	// Repair is about the latest reading with differences; left out if there was none.
	Repair *Repair `json:"repair,omitempty"`
}

// Repair is a reading of VPP that found differences, with their repair.
type Repair struct {
	// Found is when the reading began, Because its reason, Differences the number of objects and
	// settings that differed.
	Found       time.Time `json:"found"`
	Because     string    `json:"because"`
	Differences uint32    `json:"differences"`
	// Repaired is when VPP was in the desired state again; left out until then.
	Repaired time.Time `json:"repaired,omitzero"`
	// Operations counts the operations since the reading, First are the first ones, a line each.
	Operations uint32   `json:"operations"`
	First      []string `json:"first"`
}

// ResyncRequest is the body of POST /api/v1/resync.
type ResyncRequest struct {
	// Reason for the journal.
	Reason string `json:"reason"`
	// Method is the scope: "upstream" reads the desired state again, "downstream" VPP, "full"
	// or "" both.
	Method ResyncMethod `json:"method"`
}

// ResyncMethod is the scope of a resync.
type ResyncMethod string

// Methods of a ResyncRequest.
const (
	ResyncFull       ResyncMethod = "full"
	ResyncUpstream   ResyncMethod = "upstream"
	ResyncDownstream ResyncMethod = "downstream"
)

// Diff is the difference between VPP and the desired state.
type Diff struct {
	// Time is when the reading of VPP began. On TCP it may be some seconds ago, because clients
	// share a reading; the control socket reads VPP for each request. A Backend leaves it out.
	Time time.Time `json:"time,omitzero"`
	// Renderers are ordered by name.
	Renderers []RendererDiff `json:"renderers"`
}

// RendererDiff is the part of one renderer.
type RendererDiff struct {
	Renderer string `json:"renderer"`
	// Operations would bring VPP to the desired state, each as one line; empty = it is in that
	// state.
	Operations []string `json:"operations"`
	// Objects are the frontends, "ip:port/PROTO", or the networks of routes that the operations
	// are about, in their order; "" = a setting, or a list.
	Objects []string `json:"objects"`
	// Missing are the frontends without a row in VPP.
	Missing []string `json:"missing"`
	// Error is the reason why VPP could not be read; "" = none.
	Error string `json:"error,omitempty"`
}
