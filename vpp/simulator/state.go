package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
					if s.Name == source {
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

// Counters counts the requests of the API clients of a simulated VPP. Requests of the Go API (Exec,
// topology, foreign rows) do not count. The counters survive a crash.
type Counters struct {
	requests  map[string]uint64
	mutating  uint64
	dropped   uint64
	crashes   uint64
	lastCrash string
}

// Of returns how many requests of the given message name were executed.
func (c Counters) Of(name string) uint64 { return c.requests[name] }

// Mutating returns how many requests were to change the configuration, successful or not.
func (c Counters) Mutating() uint64 { return c.mutating }

// Dropped returns how many frames were ignored without an answer: unknown message id, too short,
// unknown client index.
func (c Counters) Dropped() uint64 { return c.dropped }

// String lists the requests by name, one per line, sorted.
func (c Counters) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.requests)) {
		fmt.Fprintf(&b, "%s %d\n", name, c.requests[name])
	}
	return b.String()
}

func (c *Counters) reset() {
	*c = Counters{requests: make(map[string]uint64)}
}

// count notes a request.
func (c *Counters) count(name string, kind model.Class) {
	c.requests[name]++
	if kind == model.ClassWrite {
		c.mutating++
	}
}

// Counters returns a copy of the counters.
func (v *VPP) Counters() Counters {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.counters
	c.requests = maps.Clone(c.requests)
	return c
}

// ResetCounters sets all counters to 0.
func (v *VPP) ResetCounters() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counters.reset()
}
