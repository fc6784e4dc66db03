package virtual

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// Row is a load-balancing row as VPP's dump returns it, whatever client added it.
type Row struct {
	// At is the frontend.
	At netip.AddrPort
	// Tag marks the owner.
	Tag string
	// Backends are reached by new connections, Draining only keep theirs; both are ordered.
	Backends, Draining []netip.AddrPort
}

// RowChange is one change of a load-balancing row that VPP has made.
type RowChange struct {
	// At is the frontend.
	At netip.AddrPort
	// Backend is the one that was added or removed; invalid when it was the whole row.
	Backend netip.AddrPort
	// Added is false for a removal.
	Added bool
	// Refused says that VPP was asked for the change and refused it (Stream.Refuse).
	Refused bool
}

// RowChangeOf returns the change of a row that a request makes.
func RowChangeOf(req api.Message) (RowChange, bool) {
	switch m := req.(type) {
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		return RowChange{At: netip.AddrPortFrom(netip.AddrFrom4(m.ExternalAddr), m.ExternalPort), Added: m.IsAdd}, true
	case *nat44_ed.Nat44LbStaticMappingAddDelLocal:
		return RowChange{
			At:      netip.AddrPortFrom(netip.AddrFrom4(m.ExternalAddr), m.ExternalPort),
			Backend: netip.AddrPortFrom(netip.AddrFrom4(m.Local.Addr), m.Local.Port), Added: m.IsAdd,
		}, true
	}
	return RowChange{}, false
}

// spared reports whether a request is never refused.
func (d *Stream) spared(req api.Message) bool {
	c, is := RowChangeOf(req)
	return is && d.Spared != nil && d.Spared(c)
}

// Rows reads all rows, ordered by frontend. A VPP that is down has none.
func (d *Stream) Rows() ([]Row, error) {
	if !d.VPP.Alive() {
		return nil, nil
	}
	details, err := d.VPP.Exec(&nat44_ed.Nat44LbStaticMappingDump{})
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	var rows []Row
	for _, m := range details {
		d, is := m.(*nat44_ed.Nat44LbStaticMappingDetails)
		if !is {
			continue
		}
		row := Row{At: netip.AddrPortFrom(netip.AddrFrom4(d.ExternalAddr), d.ExternalPort), Tag: d.Tag}
		entries := make([]nat44.Local, len(d.Locals))
		for i, l := range d.Locals {
			entries[i] = nat44.Local{Addr: netip.AddrFrom4(l.Addr), Port: l.Port, Weight: l.Probability}
		}
		live, draining := nat44.Shares(row.At, entries)
		row.Backends, row.Draining = endpoints(live), endpoints(draining)
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(a.At.Compare(b.At)) })
	return rows, nil
}

// endpoints returns the endpoints of locals, ordered.
func endpoints(locals []nat44.Local) (all []netip.AddrPort) {
	for _, l := range locals {
		all = append(all, l.Endpoint())
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return all
}
