package runtime

import (
	"math/bits"
	"sync"
)

const (
	minRing   = 8    // slots of the smallest ring
	maxPooled = 1024 // slots of the largest ring that is kept for re-use
	scanLimit = 8    // up to this length a key is searched by looking at every entry, beyond it an index is kept
)

// entry is one pending message.
type entry struct {
	msg  any    // as posted: an envelope, a *timer or the message itself
	key  string // of messages.Coalescer; "" = it does not coalesce
	at   int64  // when it was posted; a replacement keeps the instant of what it replaces, because that long the key has been waiting
	life *life  // set for what an incarnation posts to itself: dropped when that incarnation is over
}

// slot is what an entry coalesces by. What an incarnation posts to itself never replaces what others have sent, because it is dropped with
// the incarnation and would take the other's message with it.
type slot struct {
	key string
	own bool
}

func (e *entry) slot() slot { return slot{e.key, e.life != nil} }

// queue is a FIFO of messages with latest-wins slots. An empty queue owns no memory: its ring goes back to the pool. It is not safe for
// concurrent use; the mailbox locks.
type queue struct {
	ring *ring // nil = empty
}

// ring is a circular buffer. Entries are numbered for ever, the one numbered seq+i being at (head+i) modulo the size.
type ring struct {
	slots []entry
	head  int
	n     int
	seq   uint64          // number of the entry at head
	index map[slot]uint64 // entry numbers by key, complete when indexed
	// indexed says that the ring grew beyond scanLimit. It is reset when the ring is emptied.
	indexed bool
}

func (q *queue) len() int {
	if q.ring == nil {
		return 0
	}
	return q.ring.n
}

// at returns the i-th entry from the front.
func (r *ring) at(i int) *entry { return &r.slots[(r.head+i)&(len(r.slots)-1)] }

// push appends an entry, or replaces the pending one of its key in place, in which case it reports true.
func (q *queue) push(p *rings, e entry) (replaced bool) {
	if q.ring == nil {
		q.ring = p.get(minRing)
	}
	r := q.ring
	if e.key != "" {
		if old := r.find(e.slot()); old != nil {
			old.msg, old.life = e.msg, e.life
			return true
		}
	}
	if r.n == len(r.slots) {
		r = r.grow(p)
		q.ring = r
	}
	*r.at(r.n) = e
	if r.n++; r.indexed {
		if e.key != "" {
			r.index[e.slot()] = r.seq + uint64(r.n) - 1
		}
	} else if r.n > scanLimit {
		r.reindex()
	}
	return false
}

// find returns the pending entry of a slot, nil if there is none.
func (r *ring) find(s slot) *entry {
	if r.indexed {
		if number, ok := r.index[s]; ok {
			return r.at(int(number - r.seq))
		}
		return nil
	}
	for i := range r.n {
		if e := r.at(i); e.key == s.key && (e.life != nil) == s.own {
			return e
		}
	}
	return nil
}

func (r *ring) reindex() {
	if r.index == nil {
		r.index = make(map[slot]uint64, len(r.slots))
	}
	r.indexed = true
	for i := range r.n {
		if e := r.at(i); e.key != "" {
			r.index[e.slot()] = r.seq + uint64(i)
		}
	}
}

// grow moves the entries into a ring of twice the size.
func (r *ring) grow(p *rings) *ring {
	bigger := p.get(2 * len(r.slots))
	n := copy(bigger.slots, r.slots[r.head:])
	copy(bigger.slots[n:], r.slots[:r.head])
	bigger.n, bigger.seq = r.n, r.seq
	bigger.index, r.index = r.index, bigger.index // entry numbers stay valid
	bigger.indexed, r.indexed = r.indexed, false
	p.put(r)
	return bigger
}

// pop removes the first entry. The queue must not be empty.
func (q *queue) pop(p *rings) entry {
	r := q.ring
	first := &r.slots[r.head]
	e := *first
	*first = entry{}
	if r.indexed && e.key != "" {
		delete(r.index, e.slot())
	}
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.seq++
	if r.n--; r.n == 0 {
		p.put(r)
		q.ring = nil
	}
	return e
}

// rings is the store of empty rings of one system, by size. It must be allocated by itself: package sync has a list of all pools that are in
// use, so that what a pool is a field of stays in memory until the second collection after its end.
type rings struct {
	bySize [8]sync.Pool // for minRing << 0 to minRing << 7 = maxPooled slots
}

func ringClass(size int) int { return bits.TrailingZeros(uint(size / minRing)) }

func (p *rings) get(size int) *ring {
	if size <= maxPooled {
		if r, ok := p.bySize[ringClass(size)].Get().(*ring); ok {
			return r
		}
	}
	return &ring{slots: make([]entry, size)}
}

// put takes back a ring. Large ones are left to the garbage collector, so that a burst does not stay in memory.
func (p *rings) put(r *ring) {
	size := len(r.slots)
	if size > maxPooled {
		return
	}
	if r.n > 0 { // it was outgrown: its entries live on elsewhere
		clear(r.slots)
	}
	if r.indexed {
		clear(r.index)
	}
	r.head, r.n, r.seq, r.indexed = 0, 0, 0, false
	p.bySize[ringClass(size)].Put(r)
}
