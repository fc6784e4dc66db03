package runtime

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// modelQueue is the obvious implementation of queue.
type modelQueue []entry

func (m *modelQueue) push(e entry) bool {
	if e.key != "" {
		for i := range *m {
			if old := &(*m)[i]; old.slot() == e.slot() {
				old.msg, old.life = e.msg, e.life
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

// TestQueueAgainstModel: through random pushes and pops, growth and re-use of rings, the queue holds what the model holds.
func TestQueueAgainstModel(t *testing.T) {
	var pool rings // shared by all runs, so that used rings come back
	lives := []*life{nil, {incarnation: 1}, {incarnation: 2}}
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
				e.life = rapid.SampledFrom(lives).Draw(t, "life")
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
		for i := range m {
			if *q.ring.at(i) != m[i] {
				t.Fatalf("entry %d is %+v, want %+v", i, *q.ring.at(i), m[i])
			}
		}
	})
}

// TestEmptyQueueOwnsNothing: the ring goes back, whatever its size, and comes out clean.
func TestEmptyQueueOwnsNothing(t *testing.T) {
	var pool rings
	for _, n := range []int{1, minRing, minRing + 1, maxPooled, 10 * maxPooled} {
		var q queue
		for i := range n {
			q.push(&pool, entry{msg: i, key: fmt.Sprint(i)})
		}
		for range n {
			q.pop(&pool)
		}
		if q.ring != nil {
			t.Errorf("an empty queue keeps its ring after %d entries", n)
		}
	}
	for size := minRing; size <= maxPooled; size *= 2 {
		r := pool.get(size)
		if r.n != 0 || r.head != 0 || r.seq != 0 || r.indexed || len(r.index) != 0 || len(r.slots) != size {
			t.Errorf("ring of %d from the pool: n %d head %d seq %d index %d", size, r.n, r.head, r.seq, len(r.index))
		}
		for i := range r.slots {
			if r.slots[i] != (entry{}) {
				t.Fatalf("ring of %d from the pool holds %+v", size, r.slots[i])
			}
		}
	}
}
