package routes

import (
	"testing"

	"go.fd.io/govpp/binapi/fib"
)

// TestPriority pins the priority of our routes: the number is the agreement with all other clients
// that make routes.
func TestPriority(t *testing.T) {
	const lastConfigured, neighbour = 0xc1, 0xd0
	if sourcePriority <= lastConfigured || sourcePriority >= neighbour {
		t.Errorf("our routes have priority %#x", sourcePriority)
	}
}

func TestNewSources(t *testing.T) {
	api := fib.FibSource{ID: 8, Name: "API", Priority: 0x80}
	ours := func(id uint8) fib.FibSource { return fib.FibSource{ID: id, Name: "troupe", Priority: 0xcf} }
	old := fib.FibSource{ID: 30, Name: "troupe", Priority: 0xd7}
	for _, c := range []struct {
		name    string
		all     []fib.FibSource
		current uint8
		mine    []uint8
	}{
		{"none", []fib.FibSource{api}, 0, nil},
		{"one", []fib.FibSource{api, ours(26)}, 26, []uint8{26}},
		{"registered twice, in any order", []fib.FibSource{ours(28), ours(27)}, 27, []uint8{27, 28}},
		{"another priority", []fib.FibSource{old}, 0, []uint8{30}},
		{"another priority and ours", []fib.FibSource{old, ours(31)}, 31, []uint8{30, 31}},
		{"our name with the id of nothing", []fib.FibSource{ours(0)}, 0, nil},
		{"a name that begins like ours", []fib.FibSource{{ID: 26, Name: "troupe2", Priority: 0xcf}}, 0, nil},
	} {
		got := newSources(c.all)
		check(t, c.name+": current", c.current, got.current)
		check(t, c.name+": ours", c.mine, got.all)
	}
	if got := newSources([]fib.FibSource{api}); got.names[8] != "API" || got.ours(8) {
		t.Errorf("names %v, all %v", got.names, got.all)
	}
}
