package vnet

// None is VPP's "no index": ~0.
const None = ^uint32(0)

// Pool is VPP's index-stable allocator: elements keep their index for life, freed indices are
// handed out again last-freed-first, and iteration is in index order. The order of dumps, the
// numbering of interfaces and the affinity leftovers of VPP all follow from it.
type Pool[T any] struct {
	slots []slot[T]
	free  []uint32
}

type slot[T any] struct {
	used bool
	elt  T
}

// Put stores elt and returns its index.
func (p *Pool[T]) Put(elt T) uint32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		p.slots[i] = slot[T]{used: true, elt: elt}
		return i
	}
	p.slots = append(p.slots, slot[T]{used: true, elt: elt})
	return uint32(len(p.slots) - 1)
}

// Get returns the element at index i, and whether i is in use.
func (p *Pool[T]) Get(i uint32) (T, bool) {
	if uint64(i) >= uint64(len(p.slots)) || !p.slots[i].used {
		var zero T
		return zero, false
	}
	return p.slots[i].elt, true
}

// Stale returns what lies at index i even when it is freed: VPP reads freed elements in places, and
// what it finds there is the last content.
func (p *Pool[T]) Stale(i uint32) (T, bool) {
	if uint64(i) >= uint64(len(p.slots)) {
		var zero T
		return zero, false
	}
	return p.slots[i].elt, true
}

// Remove frees index i. The content stays readable through stale.
func (p *Pool[T]) Remove(i uint32) {
	if uint64(i) < uint64(len(p.slots)) && p.slots[i].used {
		p.slots[i].used = false
		p.free = append(p.free, i)
	}
}

// Len returns the number of elements in use.
func (p *Pool[T]) Len() int {
	return len(p.slots) - len(p.free)
}

// Next returns the first used index that is not smaller than i.
func (p *Pool[T]) Next(i uint32) (uint32, bool) {
	for ; uint64(i) < uint64(len(p.slots)); i++ {
		if p.slots[i].used {
			return i, true
		}
	}
	return 0, false
}

// All iterates over the elements in use, in index order. Elements may be removed while iterating.
func (p *Pool[T]) All(yield func(uint32, T) bool) {
	for i := range p.slots {
		if p.slots[i].used && !yield(uint32(i), p.slots[i].elt) {
			return
		}
	}
}
