// Package heap keeps rows from using up VPP's main heap. VPP ends when an allocation fails, and an
// agent that does not know why programs the next VPP until it ends too.
//
//	Cost         how many bytes rows need, measured for each kind of row (contract suite, "memory")
//	Statistics   how much of the heap was free at the last update of VPP's statistics
//	Read         how much is free now, which holds VPP's main thread while it counts pages
//	Reserve      whether a row may be added, or may grow: a part of the heap stays free
//
// A Reserve belongs to one goroutine.
package heap

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrLow says that a row was not added, because VPP would have too little free memory.
var ErrLow = errors.New("VPP's memory is nearly used up")

// Limits of a Reserve.
const (
	// trusted is how much may be added before the heap has to be read again, in bytes.
	trusted = 4 << 20
	// step is the number of percent by which the reserve rises after a VPP ended with little
	// free memory, most is its upper limit.
	step, most = 10, 50
)

// Level is how much of the heap is free.
type Level uint8

// Levels of the free memory.
const (
	// Enough: the reserve is free, or nothing is known.
	Enough Level = iota
	// Low: a part of the reserve is in use. No object is added.
	Low
	// Critical: half of the reserve is in use. No object grows.
	Critical
)

// Reserve is the part of VPP's heap that rows must leave free, with the latest reading of the heap.
// The zero value reserves nothing. Each renderer has one; the bytes that all of them grant are
// counted together.
//
// A reading from the statistics may be older than the latest rows. An update is younger than the
// last reading of the update before it, so it has the rows that were granted until that reading.
// All later rows count as used besides: for some seconds a Reserve believes that too little is
// free. Only a batch of another renderer that was under way at that reading may be missing.
type Reserve struct {
	// Percent of the heap; 0 = rows may take all of it.
	Percent int
	// Granted counts the bytes of all rows of all renderers that were granted; nil = of this
	// one.
	Granted *atomic.Int64
	state   State
	// values of Granted: all bytes up to seen are in state; read is of the last reading
	seen, read int64
	low        bool // a new reading is due
}

// Due reports whether the heap has to be read before rows are added.
func (r *Reserve) Due() bool {
	return r.Percent > 0 && (r.state.Total == 0 || r.granted().Load()-r.read >= trusted || r.low)
}

// Took enters a reading.
func (r *Reserve) Took(s State) {
	now := r.granted().Load()
	switch {
	case s.Beat == 0:
		r.seen = now
	case s.Beat != r.state.Beat && r.state.Beat != 0:
		r.seen = r.read
	case r.state.Total == 0:
		r.seen = now // nothing was granted to this VPP
	}
	r.state, r.read, r.low = s, now, false
}

// State returns the heap as it is now, as far as is known.
func (r *Reserve) State() State {
	return State{Total: r.state.Total, Free: max(0, r.state.Free-int(r.granted().Load()-r.seen)), Beat: r.state.Beat}
}

// Grow enters bytes that VPP needs besides, for a row that it has.
func (r *Reserve) Grow(bytes int) { r.granted().Add(int64(bytes)) }

// Admit enters the bytes of a row that is to be added. An error wraps ErrLow: do not add the row.
func (r *Reserve) Admit(bytes int) error {
	if now, kept := r.State(), r.kept(); kept > 0 && now.Free-bytes < kept {
		r.low = true
		return fmt.Errorf("%w: %d of %d MiB are free, %d %% are kept free (vpp.heapReserve)",
			ErrLow, now.Free>>20, now.Total>>20, r.Percent)
	}
	r.Grow(bytes)
	return nil
}

// Level returns how much of the heap is free.
func (r *Reserve) Level() Level {
	switch now := r.State(); {
	case now.Free >= r.kept():
		return Enough
	case now.Free >= r.kept()/2:
		return Low
	}
	return Critical
}

// Again makes a new reading due, however little was added since the last one.
func (r *Reserve) Again() { r.low = true }

// kept is the size of the reserve in bytes; 0 = none, or nothing is known of the heap.
func (r *Reserve) kept() int { return r.state.Total / 100 * r.Percent }

// granted is the counter.
func (r *Reserve) granted() *atomic.Int64 {
	if r.Granted == nil {
		r.Granted = new(atomic.Int64)
	}
	return r.Granted
}

// Lost notes that VPP has ended, so that nothing is known of the heap of the next one. Where the
// memory was nearly used up, VPP may have ended for that reason, and the reserve rises; raised
// reports that.
func (r *Reserve) Lost() (raised bool) {
	now := r.State()
	raised = r.Percent > 0 && r.Percent < most && now.Total > 0 && now.Free < now.Total/100*2*r.Percent
	if raised {
		r.Percent = min(r.Percent+step, most)
	}
	*r = Reserve{Percent: r.Percent, Granted: r.Granted}
	return raised
}

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
