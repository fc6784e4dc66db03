package cnat

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Renderer is the name of this renderer in messages and plans.
const Renderer = "cnat"

// MaxBackends is how many backends a row has at most: VPP counts them in 16 bits, and reads all of
// them again with every change of one.
const MaxBackends = 4096

// Row is one translation, as it should be or as VPP holds it.
type Row struct {
	rule.Key
	// Rank of the claim. VPP does not hold it.
	Rank rule.Rank
	// RealIP says that Kubernetes has not allocated the address: packets to its other ports
	// follow the routes of VPP. Of an allocated address VPP drops packets to other ports. A
	// dump does not return RealIP.
	RealIP bool
	// Sticky sends all connections of a client to the same backend as long as that is there:
	// maglev by the source address, else the hash of the connection decides. VPP takes it from
	// the request that adds the row.
	Sticky bool
	// Maglev spreads connections by consistent hashing: where a backend comes or goes, few
	// connections would choose another one. VPP takes it from the request that adds the row.
	Maglev bool
	// Backends are ordered by address and port, without duplicates; immutable once the row is
	// handed out. A row without backends stands for a refused frontend and counts as absent.
	Backends []netip.AddrPort
}

// Equal reports whether VPP treats both rows alike.
func (r Row) Equal(other Row) bool {
	return r.sameShape(&other) && slices.Equal(r.Backends, other.Backends)
}

// sameShape reports whether everything except the backends is equal, so that one message turns one
// row into the other.
func (r *Row) sameShape(other *Row) bool {
	return r.Key == other.Key && r.RealIP == other.RealIP && r.Sticky == other.Sticky && r.Maglev == other.Maglev
}

// Within returns the row with at most n backends; held ones come first.
func (r Row) Within(n int, held []netip.AddrPort) Row {
	if len(r.Backends) <= n {
		return r
	}
	kept, others := make([]netip.AddrPort, 0, n), []netip.AddrPort(nil)
	for _, b := range r.Backends {
		if _, is := slices.BinarySearchFunc(held, b, netip.AddrPort.Compare); is && len(kept) < n {
			kept = append(kept, b)
		} else {
			others = append(others, b)
		}
	}
	r.Backends = append(kept, others[:n-len(kept)]...)
	slices.SortFunc(r.Backends, netip.AddrPort.Compare)
	return r
}

// State returns the row as the API and the command line show it.
func (r Row) State(inSync bool) *messages.RowState {
	state := &messages.RowState{Renderer: Renderer, Vip: r.String(), InSync: inSync, Locals: make([]*messages.RowLocal, len(r.Backends))}
	if r.RealIP {
		state.Flags = append(state.Flags, "real-ip")
	}
	if r.Sticky {
		state.Flags = append(state.Flags, "maglev-by-source")
	}
	if r.Maglev {
		state.Flags = append(state.Flags, "maglev")
	}
	for i, b := range r.Backends {
		state.Locals[i] = &messages.RowLocal{Address: b.String(), Weight: 1}
	}
	return state
}
