package informers

import "sync"

// item names one object of the cluster.
type item struct {
	kind string // of normalize.Kind*
	key  string // "namespace/name", or the name of a node
}

// queue holds the names of changed objects. Handlers add to it and never wait; the worker takes
// everything at once.
type queue struct {
	wake chan struct{} // holds one signal that something was added

	mu sync.Mutex
	// The value is the trigger time of the first waiting change, in Unix nanoseconds; 0 = unknown.
	items map[item]int64
}

// newQueue returns an empty queue.
func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), items: map[item]int64{}}
}

// add notes that an object changed. It keeps the trigger time of the first change, because latency
// is measured for the change that waits longest.
func (q *queue) add(i item, triggered int64) {
	q.mu.Lock()
	if first := q.items[i]; first == 0 {
		q.items[i] = triggered
	}
	q.mu.Unlock()
	q.signal()
}

// signal wakes the worker.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // the worker has not taken the last signal yet
	}
}

// take returns the items added since the last call.
func (q *queue) take() map[item]int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.items
	q.items = map[item]int64{}
	return out
}
