package informers

import "sync"

// item names one object of the cluster.
type item struct {
	kind string // of normalize.Kind*
	key  string // "namespace/name", or the name of a node
}

// queue holds the objects to look at. Handlers add to it and never wait; the worker takes
// everything at once.
type queue struct {
	wake chan struct{} // holds one signal that something was added

	mu sync.Mutex
	// with the trigger time of the first change that is waiting, in Unix nanoseconds; 0 = none
	items map[item]int64
}

// newQueue returns an empty queue.
func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), items: map[item]int64{}}
}

// add notes that an object changed. Of several changes the first trigger time is kept: the longest
// waiting change is the one whose latency is measured.
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
	default: // it has not woken from the last one yet
	}
}

// take returns what was added since the last call.
func (q *queue) take() map[item]int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.items
	q.items = map[item]int64{}
	return out
}
