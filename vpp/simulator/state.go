package simulator

import (
	"maps"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
)

// State returns the configuration and the sessions of the running VPP as text, one object per line,
// sorted within each section, so that two states can be compared line by line. Counters, times and
// pool indexes are not in it. It is empty while VPP is down.
func (v *VPP) State() string {
	var text string
	_ = v.with(func(m *model.Model) error {
		text = m.Describe()
		return nil
	})
	return text
}

// Rows returns the mappings of the NAT plugin as text, one per line, sorted: the part of State that
// a renderer is responsible for.
func (v *VPP) Rows() []string {
	var rows []string
	_ = v.with(func(m *model.Model) error {
		rows = m.NAT.DescribeMappings()
		return nil
	})
	return rows
}

// Translations returns how many translations CNAT has.
func (v *VPP) Translations() int {
	count := 0
	_ = v.with(func(m *model.Model) error {
		count = m.CNAT.Translations.Len()
		return nil
	})
	return count
}

// HiddenRoutes returns how many routes of the sources with a name are hidden by routes of other
// sources. No request of VPP shows them.
func (v *VPP) HiddenRoutes(source string) int {
	count := 0
	_ = v.with(func(m *model.Model) error {
		for _, s := range m.Sources.All {
			for _, tables := range m.Tables {
				for _, table := range tables {
					if s.Name == source && table != nil {
						count += table.Hidden(s.ID)
					}
				}
			}
		}
		return nil
	})
	return count
}

// SessionCount returns how many sessions occupy the session table, expired ones included.
func (v *VPP) SessionCount() int {
	count := 0
	_ = v.with(func(m *model.Model) error {
		count = m.NAT.Sessions.Len()
		return nil
	})
	return count
}

// Interfaces returns the sw_if_index of every interface by name.
func (v *VPP) Interfaces() map[string]uint32 {
	var all map[string]uint32
	_ = v.with(func(m *model.Model) error {
		all = maps.Clone(m.ByName)
		return nil
	})
	return all
}
