package heap

// Cost is how many bytes of the main heap rows of one kind need at most, in VPP 25.10 and 26.06.
type Cost struct {
	// Row is for each row, Backend for each backend of it, Spread for each row with a table of
	// consistent hashing, Address for each address of rows and backends, whatever rows have it.
	Row, Backend, Spread, Address int
}

// NAT44 returns the cost of a NAT44 row, whose entries are a power of two: at most four for each
// backend. Its addresses are in no table.
func NAT44() Cost { return Cost{Row: 220, Backend: 112} }

// CNAT returns the cost of a translation. Its addresses have entries in the forwarding table.
func CNAT() Cost { return Cost{Row: 480, Backend: 216, Spread: 4200, Address: 900} }

// Route returns the cost of a route to one address.
func Route() Cost { return Cost{Row: 900} }

// Of returns the bytes of one row whose addresses other rows have as well.
func (c Cost) Of(backends int, spread bool) int {
	bytes := c.Row + backends*c.Backend
	if spread {
		bytes += c.Spread
	}
	return bytes
}
