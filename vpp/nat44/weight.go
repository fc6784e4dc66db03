package nat44

// Limits of one LB mapping in VPP 25.10. With more entries the handler never returns, because it
// counts them in 8 bits; a weight sum of 0 (modulo 256) is a division by zero at the first packet.
const (
	// MaxEntries is the largest number of entries of a row, pads included.
	MaxEntries = 255
	// MinEntries is the smallest number of entries of a row, pads included.
	MinEntries = 2
	// MaxWeight is the largest sum of the weights of a row.
	MaxWeight = 255
	// MaxBackends is the largest number of real backends of a row: each has a pad.
	MaxBackends = MaxEntries / 2
)

// Weight returns the weight that every one of n backends gets in a new row: 7 for 1..36 backends, 2
// for 37..127. The shares of a row with pads change in place, see Row.Beside.
//
// VPP takes the next number of a linear congruential generator modulo the sum of the weights. With
// TWICE_NAT and in hairpin it draws twice per connection, and then the lowest bit of the number
// that chooses the backend does not change. Hence the weights:
//
//   - 7 is an odd factor, so that the shares are near to equal (3 to 4) even where the lowest bit
//     does not change, and neither of two backends is left out, whatever the number of draws
//     between two connections.
//   - 2 gives every backend one even and one odd number, so a lowest bit that does not change has
//     no effect.
func Weight(n int) uint8 {
	if unpairedWeight*n <= MaxWeight {
		return unpairedWeight
	}
	return pairedWeight
}

const (
	// unpairedWeight is the weight for few backends.
	unpairedWeight = 7
	// pairedWeight is the smallest weight that is fair to few backends when two numbers are drawn
	// per connection.
	pairedWeight = 2
	// pairedBackends is how many backends of this weight fit into a row.
	pairedBackends = MaxWeight / pairedWeight
)

// keepsWeight reports whether a row without slots, whose backends have this weight in VPP, keeps it
// when it is to have n backends. A weight that fits and is fair is kept, however few backends are
// left: a better weight is not worth the connections. Weight 1 is kept down to half of what fits
// with weight 2. So a row that grows is replaced once, one that
// shrinks at most once, and a number of backends that alternates around a limit never replaces it.
func keepsWeight(weight uint8, n int) bool {
	switch {
	case weight == 0 || int(weight)*n > MaxWeight:
		return false
	case weight >= pairedWeight:
		return true
	default:
		return 2*n > pairedBackends
	}
}
