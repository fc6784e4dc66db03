package link

import "time"

// pending is a request that was handed to the transport and whose answer is not complete.
type pending struct {
	// call waits for the answer; nil for a probe, whose answer only shows that VPP is alive.
	call *call
	// index of the request in the call.
	index int
	route *route
	room  int // what it takes of the window, in bytes
	sent  time.Time
	// ends says that the reply completes the dump right before this entry too.
	ends bool
	done bool
}

// fifo is the table context -> pending request of one connection. Contexts are consecutive numbers,
// so the table is a ring and the place of a context is its distance from the oldest one. The length
// counts completed entries behind an incomplete one too: VPP answers in order, so anything else
// would let a lost reply grow the table.
type fifo struct {
	ring []pending
	head int
	n    int
	base uint32
	room int // of all entries
}

// push appends a request and returns its context.
func (f *fifo) push(p pending) uint32 {
	if f.n == len(f.ring) {
		f.grow()
	}
	f.ring[(f.head+f.n)&(len(f.ring)-1)] = p
	f.n++
	f.room += p.room
	return f.base + uint32(f.n-1)
}

// get returns the entry of a context, or nil. It is valid until the next push or pop.
func (f *fifo) get(context uint32) *pending {
	distance := context - f.base
	if distance >= uint32(f.n) {
		return nil
	}
	return &f.ring[(f.head+int(distance))&(len(f.ring)-1)]
}

// oldest returns the entry that VPP has to answer next, or nil.
func (f *fifo) oldest() *pending {
	return f.get(f.base)
}

// pop drops the completed entries at the front and reports whether there were any.
func (f *fifo) pop() bool {
	popped := false
	for f.n > 0 && f.ring[f.head].done {
		f.room -= f.ring[f.head].room
		f.ring[f.head] = pending{}
		f.head = (f.head + 1) & (len(f.ring) - 1)
		f.base++
		f.n--
		popped = true
	}
	return popped
}

// grow doubles the ring; its length is always a power of two.
func (f *fifo) grow() {
	ring := make([]pending, max(16, 2*len(f.ring)))
	for i := range f.n {
		ring[i] = f.ring[(f.head+i)&(len(f.ring)-1)]
	}
	f.ring, f.head = ring, 0
}
