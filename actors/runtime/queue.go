package runtime

import (
	"iter"
	"math/bits"
	"sync"
)

const (
	minNodes  = 8    // nodes of the smallest list
	maxPooled = 1024 // nodes of the largest list that is kept for re-use
	// up to this length a key is searched by looking at every entry, beyond it an index is kept
	scanLimit = 8
)

// entry is one pending message.
type entry struct {
	msg any    // as posted: an envelope, a *timer or the message itself
	key string // of messages.Coalescer; "" = it does not coalesce
	// when it was posted; a newer value keeps the instant of the first one, because the key has
	// been pending since then
	at int64
}

// slot is the key by which an entry coalesces. A message of an incarnation to itself never replaces
// a message of another sender: it is dropped with the incarnation, and the other message would be
// lost.
type slot struct {
	key string
	own bool
}

// slot is the slot of the entry.
func (e *entry) slot() slot { return slot{e.key, e.own()} }

// own reports whether an incarnation posted the message to itself.
func (e *entry) own() bool {
	_, is := e.msg.(*timer)
	return is
}

// queue is a FIFO of messages in which a newer value of a key replaces the pending one and goes to
// the end. An empty queue owns no memory: its list goes back to the pool. It is not safe for
// concurrent use; the mailbox locks.
type queue struct {
	list *list // nil = empty
}

// list links its entries in the order in which they will be handled. An entry stays in its node
// until it is handled. So a newer value changes a few links, and needs neither memory nor a change
// of the index. Node numbers begin at 1, so that 0 means none.
type list struct {
	nodes []node         // number 0 is not used
	n     int            // entries
	head  int32          // first node when n > 0
	tail  int32          // last node when n > 0
	used  int32          // nodes 1 to used are linked or free, later ones were never needed
	free  int32          // first free node, the others follow by next
	index map[slot]int32 // node numbers by key, complete when indexed
	// more than scanLimit entries were pending at once; reset when the list is empty
	indexed bool
}

// node is the place of one entry. The prev of the first node and the next of the last one mean
// nothing, which saves writing them.
type node struct {
	entry
	prev, next int32
}

// len is the number of pending messages: with keys, at most one for each slot.
func (q *queue) len() int {
	if q.list == nil {
		return 0
	}
	return q.list.n
}

// all are the entries in the order in which they will be handled.
func (q *queue) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		l := q.list
		for i, left := int32(0), q.len(); left > 0; left-- {
			if i == 0 {
				i = l.head
			} else {
				i = l.nodes[i].next
			}
			if !yield(&l.nodes[i].entry) {
				return
			}
		}
	}
}

// push appends an entry. It reports true if the entry replaced a pending one of the same slot,
// whose node moves to the end. So messages of one sender are handled in the order sent, minus
// superseded values.
func (q *queue) push(p *lists, e entry) (replaced bool) {
	l := q.list
	if l == nil {
		l = p.get(minNodes)
		q.list = l
	}
	if e.key != "" {
		if i := l.find(e.slot()); i != 0 {
			old := &l.nodes[i]
			old.msg = e.msg
			l.moveToEnd(i)
			return true
		}
	}
	i := l.free
	if i != 0 {
		l.free = l.nodes[i].next
	} else {
		if int(l.used) == len(l.nodes)-1 {
			l = l.grow(p)
			q.list = l
		}
		l.used++
		i = l.used
	}
	if l.n == 0 {
		l.head = i
	} else {
		l.nodes[l.tail].next = i
	}
	place := &l.nodes[i]
	place.entry, place.prev = e, l.tail
	l.tail = i
	if l.n++; l.indexed {
		if e.key != "" {
			l.index[e.slot()] = i
		}
	} else if l.n > scanLimit {
		l.reindex()
	}
	return false
}

// pop removes the first entry. The queue must not be empty.
func (q *queue) pop(p *lists) entry {
	l := q.list
	i := l.head
	first := &l.nodes[i]
	e := first.entry
	if l.indexed && e.key != "" {
		delete(l.index, e.slot())
	}
	l.head = first.next
	first.entry, first.next = entry{}, l.free
	l.free = i
	if l.n--; l.n == 0 {
		p.put(l)
		q.list = nil
	}
	return e
}

// find returns the node of a slot, 0 if none is pending.
func (l *list) find(s slot) int32 {
	if l.indexed {
		return l.index[s]
	}
	for i := int32(1); i <= l.used; i++ {
		// in memory order, which is faster than along the links; free nodes have no key
		if e := &l.nodes[i]; e.key == s.key && e.own() == s.own {
			return i
		}
	}
	return 0
}

// reindex makes the index complete. It happens once for each burst of more than scanLimit entries.
func (l *list) reindex() {
	if l.index == nil {
		l.index = make(map[slot]int32, len(l.nodes))
	}
	l.indexed = true
	for i := int32(1); i <= l.used; i++ {
		if e := &l.nodes[i]; e.key != "" {
			l.index[e.slot()] = i
		}
	}
}

// moveToEnd links a node behind the last one.
func (l *list) moveToEnd(i int32) {
	if i == l.tail {
		return
	}
	n := &l.nodes[i]
	if i == l.head {
		l.head = n.next
	} else {
		l.nodes[n.prev].next = n.next
	}
	l.nodes[n.next].prev = n.prev
	n.prev = l.tail
	l.nodes[l.tail].next = i
	l.tail = i
}

// grow moves the nodes into a list of twice the size, where they keep their numbers.
func (l *list) grow(p *lists) *list {
	bigger := p.get(2 * len(l.nodes))
	copy(bigger.nodes, l.nodes)
	bigger.n, bigger.head, bigger.tail, bigger.used = l.n, l.head, l.tail, l.used
	bigger.index, l.index = l.index, bigger.index
	bigger.indexed, l.indexed = l.indexed, false
	p.put(l)
	return bigger
}

// lists is the store of empty lists of one system, by size. It must be allocated by itself. Package
// sync has a list of all pools in use, so a struct with a pool stays in memory until the second
// collection after its end.
type lists struct {
	bySize [8]sync.Pool // for minNodes << 0 to minNodes << 7 = maxPooled nodes
}

// sizeIndex is the index in lists of a size, which is a power of two.
func sizeIndex(size int) int { return bits.TrailingZeros(uint(size / minNodes)) }

// get returns an empty list. Its nodes hold no entries, its links are leftovers.
func (p *lists) get(size int) *list {
	if size <= maxPooled {
		if l, ok := p.bySize[sizeIndex(size)].Get().(*list); ok {
			return l
		}
	}
	return &list{nodes: make([]node, size)}
}

// put takes back a list. Large ones are left to the garbage collector, so that a burst does not
// stay in memory.
func (p *lists) put(l *list) {
	size := len(l.nodes)
	if size > maxPooled {
		return
	}
	if l.n > 0 { // outgrown: grow has copied its entries
		clear(l.nodes)
	}
	if l.indexed {
		clear(l.index)
	}
	l.n, l.head, l.tail, l.used, l.free, l.indexed = 0, 0, 0, 0, 0, false
	p.bySize[sizeIndex(size)].Put(l)
}
