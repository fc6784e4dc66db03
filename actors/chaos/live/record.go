package live

import (
	"time"
)

// State is the state of a fault.
type State string

// The states of a fault, in their order.
const (
	// StateActive: the fault lasts.
	StateActive State = "active"
	// StateRecovering: the fault has ended; Live observes whether the agent is well again.
	StateRecovering State = "recovering"
	// StateWell: the agent has no problem that it did not have before the fault.
	StateWell State = "well"
	// StateNotWell: it still has such a problem after the recovery time.
	StateNotWell State = "not-well"
	// StateUnknown: the agent stopped before the outcome was known.
	StateUnknown State = "unknown"
)

// Record is the audit record of one fault.
type Record struct {
	// Live writes these fields under its lock; callers get copies.

	// ID counts the faults of this agent, from 1.
	ID uint64 `json:"id" column:"ID"`
	// State of the fault.
	State State `json:"state" column:"STATE"`
	// Actor is the path of the actor; "" = the fault has none.
	Actor string `json:"actor" column:"ACTOR"`
	// The fault with all its defaults.
	What Fault `json:"what" column:"FAULT"`
	// Who injected it: the peer of the control socket, or the run.
	Who string `json:"who" column:"WHO"`
	// Began is the time of the injection, Until the deadline, Ended the end.
	Began time.Time `json:"began" column:"BEGAN"`
	Until time.Time `json:"until,omitzero" column:"UNTIL"`
	Ended time.Time `json:"ended,omitzero" column:"ENDED"`
	// EndedBy is the reason of the end: "done", "deadline", or who stopped it.
	EndedBy string `json:"endedBy,omitempty"`
	// Struck counts the failures or messages that it has cost; for a suspension, the messages
	// that waited at its end.
	Struck uint64 `json:"struck" column:"STRUCK"`
	// Recovered is the time from the end until the agent was well again and stayed so.
	Recovered Duration `json:"recovered,omitempty"`
	// VPPWrites and VPPReads count the changes of VPP's configuration and the reads of all rows
	// from the injection until the agent was well. They do not include drift checks.
	VPPWrites uint64 `json:"vppWrites"`
	VPPReads  uint64 `json:"vppReads"`
	// Outcome is one line for an operator; "" = it is open.
	Outcome string `json:"outcome,omitempty" column:"OUTCOME"`
	// Run is the drill it belongs to; 0 = none.
	Run uint64 `json:"run,omitempty"`
}

// Over reports whether the record is final.
func (r *Record) Over() bool { return r.State != StateActive && r.State != StateRecovering }

// Status is the state of all faults and of the latest drill.
type Status struct {
	// Enabled is false in an agent without --enable-chaos; Hint then says how to enable chaos.
	Enabled bool   `json:"enabled"`
	Hint    string `json:"hint,omitempty"`
	// Active is the number of active faults.
	Active int `json:"active"`
	// Run is the latest drill; nil = none.
	Run *RunStatus `json:"run,omitempty"`
	// Records are the latest faults, the newest first.
	Records []Record `json:"records"`
}

// Find returns the record of a fault, nil if it has been dropped.
func (s *Status) Find(id uint64) *Record {
	for i := range s.Records {
		if s.Records[i].ID == id {
			return &s.Records[i]
		}
	}
	return nil
}

// keptRecords bounds the audit record in memory; the log has all of it.
const keptRecords = 256

// Replay is the plan that injects the recorded faults again: the same ones into the same actors, as
// long after each other as they were, but at most a minute.
func (s *Status) Replay() Plan {
	plan := Plan{Name: "replay", BlastRadius: MostFaults, Faults: []Step{}}
	most := min(time.Minute, MostRunFor/time.Duration(len(s.Records)+1))
	at := time.Second // a step at 0 would be one at a random time
	for i := len(s.Records) - 1; i >= 0; i-- {
		r := &s.Records[i] // the newest comes first
		if i < len(s.Records)-1 {
			at += min(r.Began.Sub(s.Records[i+1].Began), most)
		}
		step := Step{Fault: r.What, At: Duration(at)}
		step.Actor = r.Actor
		plan.Faults = append(plan.Faults, step)
	}
	plan.For = Duration(at + time.Second)
	return plan
}
