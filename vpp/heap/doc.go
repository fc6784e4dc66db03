// Package heap keeps rows from using up VPP's main heap. VPP ends when an allocation fails, and an
// agent that does not know why programs the next VPP until it ends too.
//
//	Cost         how many bytes rows need, measured for each kind of row (contract suite, "memory")
//	Statistics   how much of the heap was free at the last update of VPP's statistics
//	Read         how much is free now, which holds VPP's main thread while it counts pages
//	Reserve      whether a row may be added, or may grow: a part of the heap stays free
//
// A Reserve belongs to one goroutine.
package heap
