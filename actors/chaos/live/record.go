package live

import (
	"fmt"
	"time"
)

// State is how far a fault is.
type State string

// The states of a fault, in their order.
const (
	// StateActive: it strikes.
	StateActive State = "active"
	// StateRecovering: it is over; whether the agent is well again is being watched.
	StateRecovering State = "recovering"
	// StateWell: the agent is as well as it was before.
	StateWell State = "well"
	// StateNotWell: it is not, and was given its time.
	StateNotWell State = "not-well"
	// StateUnknown: nobody could watch to the end.
	StateUnknown State = "unknown"
)

// Record is the audit record of one fault.
type Record struct {
	// ID counts the faults of this agent, from 1.
	ID uint64 `json:"id"`
	// Who asked for it: the peer of the control socket, or the run that chose it.
	Who string `json:"who"`
	// What was asked for, complete.
	What Fault `json:"what"`
	// Actor is the path of whom it happens to.
	Actor string `json:"actor"`
	// Began is when it was armed, Until when it ends at the latest, Ended when it did.
	Began time.Time `json:"began"`
	Until time.Time `json:"until,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// EndedBy is why it ended: "done", "deadline", or who stopped it.
	EndedBy string `json:"endedBy,omitempty"`
	// State is how far it is.
	State State `json:"state"`
	// Struck counts the failures or messages that it has cost; of a suspension the messages that waited at its end.
	Struck uint64 `json:"struck"`
	// Recovered is how long it took after the end until all was well again, for good.
	Recovered Duration `json:"recovered,omitempty"`
	// VPPWrites and VPPReads are the changes of VPP's configuration and the reads of all rows from the beginning until all was well and quiet.
	// Periodic checks are not among the latter.
	VPPWrites uint64 `json:"vppWrites"`
	VPPReads  uint64 `json:"vppReads"`
	// Outcome is one line for an operator; "" = not known yet.
	Outcome string `json:"outcome,omitempty"`
	// Run is the drill it belongs to; 0 = none.
	Run uint64 `json:"run,omitempty"`
}

// Over reports whether nothing more will change about it.
func (r *Record) Over() bool { return r.State != StateActive && r.State != StateRecovering }

// line is how the record begins in journal and log.
func (r *Record) line() string { return fmt.Sprintf("#%d %s", r.ID, r.What) }

// Status is everything about chaos at one instant.
type Status struct {
	// Enabled is false in an agent without --enable-chaos; Hint says then how to change that.
	Enabled bool   `json:"enabled"`
	Hint    string `json:"hint,omitempty"`
	// Active is how many faults strike now.
	Active int `json:"active"`
	// Run is the latest drill; nil = there was none.
	Run *RunStatus `json:"run,omitempty"`
	// Records are the latest faults, the newest first.
	Records []Record `json:"records"`
}

// Find returns the record of a fault, nil if it is not there any more.
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
