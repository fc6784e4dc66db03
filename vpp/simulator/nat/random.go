package nat

// random is the generator of VPP's NAT: a linear congruential generator with 32 bits of state. Its
// low bits have tiny periods (the lowest one alternates), and VPP reduces it with modulo, so small
// power-of-two weight sums are not random at all when every session takes two numbers. That skew is
// why the model carries the generator instead of a better one.
type random struct {
	seed uint32
}

// next advances the generator.
func (r *random) next() uint32 {
	r.seed = r.seed*1664525 + 1013904223
	return r.seed
}

// port draws a port offset in 0..limit.
func (r *random) port(limit uint16) uint16 {
	wide := r.next()
	if narrow := uint16(wide); narrow <= limit {
		return narrow
	}
	return uint16(wide % (uint32(limit) + 1))
}
