package render

import "github.com/troupe-vpp/troupe/vpp/heap"

// Bound is an adapter that reads the work queue.
type Bound[K Key] interface {
	// Bind gives the adapter its view of the queue, before any other method is called.
	Bind(progress Progress[K])
}

// Progress is an adapter's view of the work queue.
type Progress[K Key] interface {
	// Dirty reports whether an object may not be as wanted.
	Dirty(k K) bool
	// Refusal returns how often in a row VPP refused an object, and the last error; nil = no
	// refusal.
	Refusal(k K) (times int, err error)
	// Pending counts the objects that are being worked on, without the refused ones.
	Pending() int
	// Refused returns how often in a row VPP refused settings, and the last error; nil = no
	// refusal.
	Refused() (times int, err error)
	// Read requests a read of VPP before the next batch. reason goes into the journal.
	Read(reason string)
	// Memory is how much of VPP's memory is free: while it is critical, objects may not grow. When
	// it is better again, the driver works on the objects that are not as wanted.
	Memory() heap.Level
}

// progress satisfies Progress for the adapter of one driver.
type progress[K Key] struct {
	*queue[K]
	connection *connection
	heap       *heap.Reserve
}

// Refused satisfies Progress.
func (p progress[K]) Refused() (times int, err error) {
	return p.connection.refusals, p.connection.refused
}

// Read satisfies Progress.
func (p progress[K]) Read(reason string) { p.connection.verify = reason }

// Memory satisfies Progress.
func (p progress[K]) Memory() heap.Level { return p.heap.Level() }
