package heap

import (
	"errors"
	"fmt"
)

// ErrLow says that a row was not added, because VPP would have too little free memory.
var ErrLow = errors.New("VPP's memory is nearly used up")

// Limits of a Reserve.
const (
	// trusted is how much may be added before the heap has to be read again, in bytes.
	trusted = 4 << 20
	// step is by how many percent the reserve rises after a VPP that has ended with little free
	// memory, most is where it stops.
	step, most = 10, 50
)

// Reserve is the part of VPP's heap that rows must leave free, and what is known of the heap. The
// zero value reserves nothing. Several renderers have one each: a reading shows what the others
// have added, and until the next one each of them adds little.
type Reserve struct {
	// Percent of the heap; 0 = rows may take all of it.
	Percent int
	state   State
	grown   int  // bytes since the reading
	low     bool // a row was refused since the reading
}

// Due reports whether the heap has to be read before rows are added.
func (r *Reserve) Due() bool {
	return r.Percent > 0 && (r.state.Total == 0 || r.grown >= trusted || r.low)
}

// Took enters a reading.
func (r *Reserve) Took(s State) { r.state, r.grown, r.low = s, 0, false }

// State returns the heap as it is now, as far as is known.
func (r *Reserve) State() State {
	return State{Total: r.state.Total, Free: max(0, r.state.Free-r.grown)}
}

// Grow enters bytes that VPP needs besides, for a row that it has.
func (r *Reserve) Grow(bytes int) { r.grown += bytes }

// Admit enters the bytes of a row that is to be added. An error wraps ErrLow: the row must not be.
func (r *Reserve) Admit(bytes int) error {
	now := r.State()
	if r.Percent > 0 && now.Total > 0 && now.Free-bytes < now.Total/100*r.Percent {
		r.low = true
		return fmt.Errorf("%w: %d of %d MiB are free, %d %% are kept free (vpp.heapReserve)",
			ErrLow, now.Free>>20, now.Total>>20, r.Percent)
	}
	r.grown += bytes
	return nil
}

// Lost notes that VPP has ended; nothing is known of the heap of the next one. Where the memory of
// the last one was nearly used up, it may have ended of that, and the reserve rises. It reports
// whether it did.
func (r *Reserve) Lost() (raised bool) {
	now := r.State()
	raised = r.Percent > 0 && r.Percent < most && now.Total > 0 && now.Free < now.Total/100*2*r.Percent
	if raised {
		r.Percent = min(r.Percent+step, most)
	}
	*r = Reserve{Percent: r.Percent}
	return raised
}
