package api

import "github.com/troupe-vpp/troupe/actors/chaos/live"

// ChaosRequest is the body of POST /api/v1/chaos: a fault, or a plan of them.
type ChaosRequest struct {
	live.Fault
	// Plan is a drill; it excludes the fields of Fault.
	Plan *live.Plan `json:"plan,omitempty"`
}

// ChaosStopped is the answer of DELETE /api/v1/chaos.
type ChaosStopped struct {
	// Stopped is the number of faults that were ended.
	Stopped int `json:"stopped"`
}
