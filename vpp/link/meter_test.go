package link_test

import (
	"context"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// TestMeter: changes, reads of rows and refusals are counted as VPP does, and everything is passed
// on.
func TestMeter(t *testing.T) {
	vpp := simulated(t)
	l, _ := connected(t, vpp, link.Config{})
	before := vpp.Counters()
	m := link.NewMeter(l)
	reqs := append(services(3, 2), &nat44_ed.Nat44ShowRunningConfig{}, &memclnt.ControlPing{}, &ip.IPRouteLookup{})
	reqs = append(reqs, services(1, 2)...) // there already: refused
	results, err := m.Do(t.Context(), reqs)
	if err != nil || len(results) != len(reqs) || results[0].Err != nil || results[len(results)-1].Err == nil {
		t.Fatalf("%+v, %v", results, err)
	}
	rows := 0
	for _, dump := range []api.Message{&nat44_ed.Nat44LbStaticMappingDump{}, &nat44_ed.Nat44AddressDump{}} {
		if err := m.Dump(t.Context(), dump, func(api.Message) { rows++ }); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := m.Usage(), (link.Usage{Writes: 4, RowReads: 1, Refused: 1}); got != want || rows != 3 {
		t.Errorf("%+v and %d rows, want %+v and 3", got, rows, want)
	}
	if after := vpp.Counters(); after.Mutating()-before.Mutating() != m.Usage().Writes {
		t.Errorf("VPP counted %d writes", after.Mutating()-before.Mutating())
	}
}

// states is a connection that has these states, one after the other.
type states struct {
	link.Runner
	all []*messages.LinkState
}

func (s *states) Run(_ context.Context, on func(*messages.LinkState)) error {
	for _, one := range s.all {
		on(one)
	}
	return nil
}

// TestMeterCountsBoots: a VPP that comes back is the same one, another one is not.
func TestMeterCountsBoots(t *testing.T) {
	said := 0
	m := link.NewMeter(&states{all: []*messages.LinkState{
		{}, {Up: true, Boot: "a"}, {Boot: "a"}, {Up: true, Boot: "a"}, {Up: true, Boot: "b"}, {Boot: "c"}, {Up: true, Boot: "b"},
	}})
	for run, want := range []uint64{2, 4} { // the second run begins with a again
		if err := m.Run(t.Context(), func(*messages.LinkState) { said++ }); err != nil {
			t.Fatal(err)
		}
		if got := m.Usage().Boots; got != want {
			t.Errorf("run %d: %d boots, want %d", run, got, want)
		}
	}
	if said != 14 {
		t.Errorf("%d states passed on", said)
	}
}
