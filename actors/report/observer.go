package report

import "time"

// Observer is told what metrics count. Its methods are called from actors and must not block.
type Observer interface {
	// Synced is called when a renderer has brought changes of some services into VPP: how long it
	// took from the first to the last message to VPP, and whether it was a full pass (after a read
	// of VPP) or an incremental one.
	Synced(renderer string, took time.Duration, full bool)
	// Programmed is called once per change of an EndpointSlice that reached VPP.
	Programmed(p Programming)
	// Operations is called with the outcome of operations on VPP.
	Operations(renderer string, succeeded, failed, unknown int)
	// Healed is called with what was done about a part that was not well: the step of the
	// escalation ("key", "object", "downstream", "full", "subtree", "exit") and how often.
	Healed(part, step string, n int)
	// Drifted is called with the number of objects that VPP did not hold as the renderer knew: they
	// were modified outside of the agent.
	Drifted(renderer string, n int)
	// Memory is called with what a renderer knows of VPP's main heap, in bytes (total 0 = nothing),
	// and with the number of its objects for which VPP has no memory.
	Memory(renderer string, total, free, waiting int)
	// InputErrors is called with the number of problems in the input of all services, whenever it
	// changes.
	InputErrors(n int)
}

// Programming is a change of an EndpointSlice that reached VPP.
type Programming struct {
	// Latency is the time since Kubernetes stamped the change. The clocks of two machines may make
	// it negative.
	Latency time.Duration
	// IPv6 is the family of the slice.
	IPv6 bool
	// Cause is the ID under which the journal has the change.
	Cause uint64
}

// None is the Observer that counts nothing.
type None struct{}

// Synced satisfies Observer.
func (None) Synced(string, time.Duration, bool) {}

// Programmed satisfies Observer.
func (None) Programmed(Programming) {}

// Operations satisfies Observer.
func (None) Operations(string, int, int, int) {}

// Healed satisfies Observer.
func (None) Healed(string, string, int) {}

// Drifted satisfies Observer.
func (None) Drifted(string, int) {}

// InputErrors satisfies Observer.
func (None) InputErrors(int) {}

// Memory satisfies Observer.
func (None) Memory(string, int, int, int) {}
