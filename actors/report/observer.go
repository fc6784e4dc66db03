package report

import "time"

// Observer counts for metrics. Its methods are called from actors and must not block.
type Observer interface {
	// Synced is called when a renderer has brought changes into VPP. took is the time from the
	// first to the last message to VPP. full says that the pass followed a read of VPP.
	Synced(renderer string, took time.Duration, full bool)
	// Programmed is called once per change of an EndpointSlice that reached VPP.
	Programmed(p Programming)
	// Operations is called with the outcome of operations on VPP.
	Operations(renderer string, succeeded, failed, unknown int)
	// Healed is called when steps of the escalation were taken for a part. step is "key",
	// "object", "downstream", "full", "subtree" or "exit", n is how often.
	Healed(part, step string, n int)
	// Drifted is called with the number of objects that were modified outside of the agent.
	Drifted(renderer string, n int)
	// Memory is called with the size and the free part of VPP's main heap, in bytes; total 0 =
	// unknown. waiting is the number of objects for which VPP has no memory.
	Memory(renderer string, total, free, waiting int)
	// InputErrors is called with the number of problems in the input of all services, whenever
	// it changes.
	InputErrors(n int)
}

// Programming is a change of an EndpointSlice that has reached VPP.
type Programming struct {
	// Latency is the time since Kubernetes stamped the change. The clocks of two machines may
	// make it negative.
	Latency time.Duration
	// IPv6 is the family of the slice.
	IPv6 bool
	// Cause is the ID of the change in the journal.
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
