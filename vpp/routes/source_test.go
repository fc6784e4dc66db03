package routes

import (
	"testing"

	"go.fd.io/govpp/binapi/fib"
)

// TestPriorities pins what the ranks give way to: these numbers are the agreement with all other clients that make routes.
func TestPriorities(t *testing.T) {
	const lastConfigured, neighbour, recursion = 0xc1, 0xd0, 0xfb
	firm, yielding := sourceOf(Firm), sourceOf(Yielding)
	if firm.priority <= lastConfigured || firm.priority >= neighbour {
		t.Errorf("a firm route has priority %#x", firm.priority)
	}
	if yielding.priority <= neighbour || yielding.priority >= recursion {
		t.Errorf("a yielding route has priority %#x", yielding.priority)
	}
	if firm.name == yielding.name || len(firm.name) > 63 || len(yielding.name) > 63 {
		t.Errorf("names %q and %q", firm.name, yielding.name)
	}
}

func TestNewSources(t *testing.T) {
	api := fib.FibSource{ID: 8, Name: "API", Priority: 0x80}
	firm := func(id uint8) fib.FibSource { return fib.FibSource{ID: id, Name: "troupe", Priority: 0xcf} }
	old := fib.FibSource{ID: 30, Name: "troupe", Priority: 0xd7}
	yielding := fib.FibSource{ID: 40, Name: "troupe-yield", Priority: 0xd1}
	for _, c := range []struct {
		name    string
		all     []fib.FibSource
		current map[Rank]uint8
		ours    []uint8
	}{
		{"none", []fib.FibSource{api}, nil, nil},
		{"one", []fib.FibSource{api, firm(26)}, map[Rank]uint8{Firm: 26}, []uint8{26}},
		{"both", []fib.FibSource{api, yielding, firm(26)}, map[Rank]uint8{Firm: 26, Yielding: 40}, []uint8{26, 40}},
		{"registered twice, in any order", []fib.FibSource{firm(28), firm(27)}, map[Rank]uint8{Firm: 27}, []uint8{27, 28}},
		{"another priority", []fib.FibSource{old}, nil, []uint8{30}},
		{"another priority and ours", []fib.FibSource{old, firm(31)}, map[Rank]uint8{Firm: 31}, []uint8{30, 31}},
		{"our name with the id of nothing", []fib.FibSource{firm(0)}, nil, nil},
		{"a name that begins like ours", []fib.FibSource{{ID: 26, Name: "troupe2", Priority: 0xcf}}, nil, nil},
	} {
		got := newSources(c.all)
		check(t, c.name+": current", c.current, got.current)
		check(t, c.name+": ours", c.ours, got.all)
	}
	if got := newSources([]fib.FibSource{api}); got.names[8] != "API" || got.ours(8) {
		t.Errorf("names %v, all %v", got.names, got.all)
	}
}
