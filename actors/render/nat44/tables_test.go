package nat44_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/messages"
)

// routed sends an interface set in which pods are in these tables, as "network=table".
func (s scene) routed(generation uint64, tables ...string) {
	s.Helper()
	set := s.Interfaces(generation, probe.Uplink, "pod2")
	for _, text := range tables {
		network, table, _ := strings.Cut(text, "=")
		set.Tables = append(set.Tables, &messages.TableNetwork{Network: network, Table: uint32(table[0] - '0')})
	}
	s.Tell(set)
}

// vrfs returns the entries of backends in other tables than 0, of all rows.
func (s scene) vrfs() (all []string) {
	for _, row := range s.VPP.VPP.Rows() {
		_, entries, _ := strings.Cut(row, "[")
		entries, _, _ = strings.Cut(entries, "]")
		for entry := range strings.SplitSeq(entries, ", ") {
			if at, vrf, other := strings.Cut(entry, " vrf "); other {
				all = append(all, strings.Fields(at)[0]+"="+vrf)
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestTablesOfBackends: backends are in the tables that the interface set says, from the first row
// on. Another table replaces entries and nothing else, and another renderer writes nothing.
func TestTablesOfBackends(t *testing.T) {
	withServices(t, []string{"a/a"}, func(s scene) {
		expect := func(what string, vrfs ...string) {
			s.Helper()
			if got := s.vrfs(); !slices.Equal(got, vrfs) {
				t.Errorf("%s: %q, want %q", what, got, vrfs)
			}
		}
		s.routed(2, "10.1.1.0/24=2")
		view := served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4", "10.1.2.9")
		s.Begin(1, "a/a")
		s.Render(1, view)
		s.settled("rows", "a/a")
		expect("rows", "10.1.1.3:8080=2", "10.1.1.4:8080=2")
		if n := s.writes(func() { s.routed(3, "10.1.1.0/24=2", "10.1.2.9/32=5") }); n != 2 {
			t.Errorf("another table costs %d messages, want 2", n)
		}
		expect("one backend is in another table", "10.1.1.3:8080=2", "10.1.1.4:8080=2", "10.1.2.9:8080=5")
		s.Kill()
		writes := s.writes(func() {
			s.Connected()
			s.Begin(2, "a/a")
			s.Render(1, view)
			s.routed(3, "10.1.1.0/24=2", "10.1.2.9/32=5")
		})
		if s.settled("another renderer", "a/a"); writes != 0 {
			t.Errorf("another renderer wrote %d times", writes)
		}
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4", "10.1.2.9-"))
		if n := s.writes(func() { s.routed(4, "10.1.1.0/24=2") }); n != 0 {
			t.Errorf("the entry of a draining backend was changed by %d messages", n)
		}
		expect("it drains", "10.1.1.3:8080=2", "10.1.1.4:8080=2", "10.1.2.9:8080=5")
		s.routed(5)
		expect("no tables any more", "10.1.2.9:8080=5")
		s.settled("at the end", "a/a")
	})
}
