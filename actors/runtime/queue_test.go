package runtime

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelQueue is the obvious implementation of queue.
type modelQueue []entry

func (m *modelQueue) push(e entry) bool {
	if e.key != "" {
		for i := range *m {
			if old := (*m)[i]; old.slot() == e.slot() {
				e.at = old.at
				*m = append(slices.Delete(*m, i, i+1), e)
				return true
			}
		}
	}
	*m = append(*m, e)
	return false
}

func (m *modelQueue) pop() entry {
	e := (*m)[0]
	*m = (*m)[1:]
	return e
}

// TestQueueAgainstModel: through random pushes and pops, growth and re-use of lists, the queue
// holds what the model holds.
func TestQueueAgainstModel(t *testing.T) {
	var pool lists // shared by all runs, so that used lists come back
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var m modelQueue
		keys := rapid.SampledFrom([]int{1, 3, 40, 3000}).Draw(t, "keys")
		serial := 0
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			for range rapid.IntRange(0, 200).Draw(t, "pushes") {
				serial++
				e := entry{msg: serial, at: int64(serial)}
				if rapid.IntRange(0, 3).Draw(t, "plain") > 0 {
					e.key = fmt.Sprint("k", rapid.IntRange(0, keys).Draw(t, "key"))
				}
				if rapid.Bool().Draw(t, "own") {
					e.msg = &timer{msg: serial}
				}
				if got, want := q.push(&pool, e), m.push(e); got != want {
					t.Fatalf("push %+v replaced %t, want %t", e, got, want)
				}
			}
			for range rapid.IntRange(0, 250).Draw(t, "pops") {
				if q.len() != len(m) {
					t.Fatalf("length %d, want %d", q.len(), len(m))
				}
				if len(m) == 0 {
					break
				}
				if got, want := q.pop(&pool), m.pop(); got != want {
					t.Fatalf("pop %+v, want %+v", got, want)
				}
			}
		}
		i := 0
		for e := range q.all() {
			if *e != m[i] {
				t.Fatalf("entry %d is %+v, want %+v", i, *e, m[i])
			}
			i++
		}
		if i != len(m) {
			t.Fatalf("%d entries, want %d", i, len(m))
		}
	})
}

// TestReplacingNeedsNoMemory: however often values are replaced, a list has no more nodes than
// entries were pending at once.
func TestReplacingNeedsNoMemory(t *testing.T) {
	var pool lists
	for _, keys := range []int{1, minNodes - 1, 100} {
		var q queue
		for i := range 100 * keys {
			q.push(&pool, entry{msg: i, key: fmt.Sprint(i % keys)})
		}
		if q.len() != keys || int(q.list.used) != keys || len(q.list.nodes) > max(minNodes, 2*(keys+1)) || len(q.list.index) > keys {
			t.Errorf("%d keys: %d entries, %d of %d nodes used, %d in the index", keys, q.len(), q.list.used, len(q.list.nodes), len(q.list.index))
		}
	}
}

// TestEmptyQueueOwnsNothing: the list goes back, whatever its size, and comes out clean.
func TestEmptyQueueOwnsNothing(t *testing.T) {
	var pool lists
	for _, n := range []int{1, minNodes, minNodes + 1, maxPooled, 10 * maxPooled} {
		var q queue
		for i := range n {
			q.push(&pool, entry{msg: i, key: fmt.Sprint(i)})
		}
		for range n {
			q.pop(&pool)
		}
		if q.list != nil {
			t.Errorf("an empty queue keeps its list after %d entries", n)
		}
	}
	for size := minNodes; size <= maxPooled; size *= 2 {
		l := pool.get(size)
		if l.n != 0 || l.used != 0 || l.free != 0 || l.indexed || len(l.index) != 0 || len(l.nodes) != size {
			t.Errorf("list of %d from the pool: n %d used %d free %d index %d", size, l.n, l.used, l.free, len(l.index))
		}
		for i := range l.nodes {
			if l.nodes[i].entry != (entry{}) {
				t.Fatalf("list of %d from the pool holds %+v", size, l.nodes[i])
			}
		}
	}
}
