package nat44

// Limits of one LB mapping in VPP 25.10. More entries make the handler loop for ever, a weight sum of 0 (modulo 256) is a division by
// zero at the first packet.
const (
	// MaxEntries is the largest number of entries of a row, pads included.
	MaxEntries = 255
	// MinEntries is the smallest number of entries of a row, pads included.
	MinEntries = 2
	// MaxWeight is the largest sum of the weights of a row.
	MaxWeight = 255
	// MaxBackends is the largest number of real backends of a row: two entries are left to the pads.
	MaxBackends = MaxEntries - 2
)

// Weight returns the weight that every one of n backends gets. It is the same for a whole range of n, the weight class, so that a
// service can grow and shrink inside the class by single locals; crossing a class means to delete and add the row.
//
// The class is 7 for 1..36 backends. VPP takes the next number of a linear congruential generator modulo the sum of the weights; with
// TWICE_NAT and in hairpin it draws twice per connection, and then the lowest bit of the number it chooses by does not change. Weight 1
// and an even number of backends would leave half of them without a connection, both of two would become one; with 7 they get shares
// of 3 and 4. The class is 1 for 37..253 backends, where nothing else fits into 8 bits.
func Weight(n int) uint8 {
	for _, class := range weightClasses {
		if n <= class.backends {
			return class.weight
		}
	}
	return 1
}

// weightClasses is ordered by backends; weight times backends never exceeds MaxWeight.
var weightClasses = [...]struct {
	backends int
	weight   uint8
}{{36, 7}, {MaxBackends, 1}}
