package virtual

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// Row is a load-balancing row as VPP's dump returns it, whatever client added it.
type Row struct {
	// At is the frontend.
	At netip.AddrPort
	// Tag marks the owner.
	Tag string
	// Backends are those with a weight, ordered.
	Backends []netip.AddrPort
}

// RowChange is one change of a load-balancing row that VPP has made.
type RowChange struct {
	// At is the frontend.
	At netip.AddrPort
	// Backend is the one that was added or removed; invalid when it was the whole row.
	Backend netip.AddrPort
	// Added is false for a removal.
	Added bool
}

// rowChange returns the change of a row that a request makes.
func rowChange(req api.Message) (RowChange, bool) {
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
		for _, l := range d.Locals {
			if l.Probability > 0 {
				row.Backends = append(row.Backends, netip.AddrPortFrom(netip.AddrFrom4(l.Addr), l.Port))
			}
		}
		slices.SortFunc(row.Backends, netip.AddrPort.Compare)
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(a.At.Compare(b.At)) })
	return rows, nil
}
