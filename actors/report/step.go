package report

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Step is one step of the escalation. Each step costs more than the one before and is taken when
// that did not help.
type Step uint8

const (
	// StepKey: what VPP refused is tried again, 1 s x 2^n apart with jitter.
	StepKey Step = iota
	// StepObject: VPP is read because it refuses one object again and again; the belief about
	// the object may be wrong.
	StepObject
	// StepDownstream: VPP is read and compared as a whole.
	StepDownstream
	// StepFull: the desired state is read anew as well, and a new incarnation of the part
	// computes everything again.
	StepFull
	// StepSubtree: the part is restarted together with its siblings, the connection to VPP
	// included.
	StepSubtree
	// StepExit: the process ends and Kubernetes starts it again; VPP goes on forwarding.
	StepExit
	// NoStep: no step is due.
	NoStep
)

// String is the word for metrics, the API and the journal.
func (s Step) String() string {
	return [...]string{"key", "object", "downstream", "full", "subtree", "exit", "none"}[s]
}

// Healed tells the healer that a part has taken one of the first two steps by itself.
type Healed struct {
	// Part is the name of the part.
	Part string
	// Step is StepKey or StepObject.
	Step Step
	// N is how often.
	N int
}

// TookStep sends Healed to the healer, unless n is 0.
func TookStep(c *runtime.Context, part string, s Step, n int) {
	if n > 0 {
		c.Send(c.PID(address.Healer), &Healed{part, s, n})
	}
}
