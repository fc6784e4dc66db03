// Package heap keeps rows from using up VPP's main heap: VPP ends when an allocation fails, and
// would be programmed into the same death by an agent that does not know why.
//
//	Cost      how many bytes rows need, measured for each kind of row (contract suite, "memory")
//	Read      how much of the heap is free now
//	Reserve   whether a row may be added: a part of the heap stays free
//
// Cost and Reserve are plain values; a Reserve belongs to one goroutine. Read sends one request.
package heap
