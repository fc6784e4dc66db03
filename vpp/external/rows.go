package external

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// Rows returns the mappings that VPP should hold, by source, in the order of their keys. Equal
// mappings of different layers are the same row, so that VPP is not changed when a layer is removed
// and the next one has the mapping as well.
func (m *Merged) Rows(cfg nat44.Config) map[string][]nat44.Row {
	rows := map[string][]nat44.Row{}
	m.Wanted(func(e *Entry) {
		if e.Mapping != nil && e.Mapping.Refused(cfg) == "" {
			rows[e.Source] = append(rows[e.Source], e.Mapping.row(cfg))
		}
	})
	for _, of := range rows {
		slices.SortFunc(of, func(a, b nat44.Row) int { return a.Key.Compare(b.Key) })
	}
	return rows
}

// Refused returns why these settings cannot serve a mapping; "" = they can.
func (m *Mapping) Refused(cfg nat44.Config) string {
	if m.Kind == nat44.Static && cfg.OutsideAlone {
		return "a mapping of a whole address needs nat44.insideRole"
	}
	return ""
}

// row translates a mapping.
func (m *Mapping) row(cfg nat44.Config) nat44.Row {
	row := nat44.Row{Key: m.Key, Kind: m.Kind}
	weight := uint8(1)
	switch m.Kind {
	case nat44.Identity:
		row.Locals = []nat44.Local{{Addr: m.Key.Addr, Port: m.Key.Port, Weight: weight}}
	case nat44.Static:
		row.Locals = []nat44.Local{{Addr: m.To[0].Addr(), Weight: weight}}
	default:
		weight = nat44.Weight(len(m.To))
		row.Flags, row.Pads = nat44.Out2InOnly|nat44.SelfTwiceNAT, cfg.Pads
		if m.Masquerade {
			row.Flags = nat44.Out2InOnly | nat44.TwiceNAT
		}
		for _, to := range m.To {
			row.Locals = append(row.Locals, nat44.Local{Addr: to.Addr(), Port: to.Port(), Table: cfg.Tables.Of(to.Addr()), Weight: weight})
		}
	}
	row.Tag = nat44.Tag{Hash: nat44.ExternalHash()}.String()
	return row
}

// Addresses are the NAT addresses that VPP should have, ordered.
func (m *Merged) Addresses() []netip.Addr {
	var out []netip.Addr
	m.Wanted(func(e *Entry) {
		if e.Address.IsValid() {
			out = append(out, e.Address)
		}
	})
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// Roles are the interfaces that should have another role than the one for services, by name.
func (m *Merged) Roles() map[string]Role {
	out := map[string]Role{}
	m.Wanted(func(e *Entry) {
		if e.Role.Name != "" {
			out[e.Role.Name] = e.Role.Role
		}
	})
	return out
}
