package nat44

import (
	"net/netip"
	"slices"
	"testing"
)

func TestDiffRow(t *testing.T) {
	const vip = "10.96.0.1:80/TCP"
	a, b, c := "10.1.1.1:80", "10.1.1.2:80", "10.1.1.3:80"
	unpadded := func(endpoints ...string) *Row {
		row := newRow(vip, endpoints...)
		row.Pads = false
		return &row
	}
	row := func(endpoints ...string) *Row {
		row := newRow(vip, endpoints...)
		return &row
	}
	changed := func(change func(*Row), endpoints ...string) *Row {
		row := newRow(vip, endpoints...).with(change)
		return &row
	}
	in := func(table uint32, row *Row, endpoints ...string) *Row {
		for i := range row.Locals {
			if slices.Contains(endpoints, row.Locals[i].String()) {
				row.Locals[i].Table = table
			}
		}
		return row
	}
	drained := func(endpoint string) Local { return newLocal(netip.MustParseAddrPort(endpoint), 0) }
	replaced := func(why string) []string {
		return []string{"delete row " + vip + ", replaced: " + why, "add row " + vip + " out2in-only,self-twice-nat -> 2 backends"}
	}
	const oneByOne, entries = "its endpoints cannot change one by one", "its entries are not the agent's"
	for _, tt := range []struct {
		name       string
		have, want *Row
		ops        []string
	}{
		{"nothing", nil, nil, nil},
		{"equal", row(a, b), row(a, b), nil},
		{"new", nil, row(a, b), []string{"add row " + vip + " out2in-only,self-twice-nat -> 2 backends"}},
		{"gone", row(a), nil, []string{"delete row " + vip}},
		{"no backend left", row(a), row(), []string{"delete row " + vip}},
		{"no backend, not there", nil, row(), nil},
		{"grows", row(a), row(a, b), []string{"add local " + b + " weight 7 to row " + vip}},
		{"grows out of its slots", row(a), row(a, b, c), []string{"grow row " + vip + " to 8 entries", "add local " + b + " weight 7 to row " + vip, "add local " + c + " weight 7 to row " + vip}},
		{"shrinks", row(a, b, c), row(b), []string{"delete local " + a + " from row " + vip, "delete local " + c + " from row " + vip}},
		{"other backend", row(a), row(b), []string{"add local " + b + " weight 7 to row " + vip, "delete local " + a + " from row " + vip}},
		{"other port of the same address", row("10.1.1.1:80"), row("10.1.1.1:81"), []string{
			"add local 10.1.1.1:81 weight 7 to row " + vip, "delete local 10.1.1.1:80 from row " + vip,
		}},
		{"affinity, grows", changed(func(r *Row) { r.Affinity = 60 }, a), changed(func(r *Row) { r.Affinity = 60 }, a, b), []string{
			"add local " + b + " weight 7 to row " + vip,
		}},
		{
			"affinity, loses a backend", changed(func(r *Row) { r.Affinity = 60 }, a, b, c), changed(func(r *Row) { r.Affinity = 60 }, a, b),
			replaced("an endpoint has left, and clients stay with theirs"),
		},
		{"flags", changed(func(r *Row) { r.Flags = Out2InOnly | TwiceNAT }, a, b), row(a, b), replaced("how it translates has changed")},
		{"affinity", changed(func(r *Row) { r.Affinity = 60 }, a, b), row(a, b), replaced("affinity changed")},
		{"tag", changed(func(r *Row) { r.Tag = "troupe/x" }, a, b), row(a, b), replaced("another service has the address")},
		{"weight", changed(func(r *Row) { r.Locals[1].Weight = 1 }, a, b), row(a, b), []string{"set weight 1 of local " + a + " of row " + vip}},
		{"has no pads", changed(func(r *Row) { r.Pads = false }, a, b), row(a, b), replaced(entries)},
		{"drains", row(a, b, c), changed(func(r *Row) { r.Draining = []Local{drained(b)} }, a, c), []string{"drain local " + b + " of row " + vip}},
		{"drains a backend that was never there", row(a), changed(func(r *Row) { r.Draining = []Local{drained(b)} }, a), nil},
		{"drains all", row(a, b), changed(func(r *Row) { r.Draining, r.Locals = []Local{drained(b)}, nil }), []string{
			"grow row " + vip + " to 8 entries", "add local 10.96.0.1:80 weight 7 to row " + vip, "drain local " + b + " of row " + vip, "delete local " + a + " from row " + vip,
		}},
		{"drains all of nothing", nil, changed(func(r *Row) { r.Draining, r.Locals = []Local{drained(b)}, nil }), nil},
		{"drains what another one has", row(a), changed(func(r *Row) { r.Draining, r.Locals = []Local{drained(b)}, nil }), []string{"delete row " + vip}},
		{
			"affinity, drains", changed(func(r *Row) { r.Affinity = 60 }, a, b), changed(func(r *Row) { r.Affinity, r.Draining = 60, []Local{drained(b)} }, a),
			[]string{"drain local " + b + " of row " + vip},
		},
		{"another table", row(a, b), in(2, row(a, b), b), []string{"add local " + b + " (table 2) weight 7 to row " + vip}},
		{"in another table all the time", in(2, row(a, b), a, b), in(2, row(a, b), a, b), nil},
		{"another table, a lone backend", row(a), in(2, row(a), a), []string{"add local " + a + " (table 2) weight 7 to row " + vip, "delete local " + a + " from row " + vip}},
		{"another table, affinity", changed(func(r *Row) { r.Affinity = 60 }, a, b), in(2, changed(func(r *Row) { r.Affinity = 60 }, a, b), a), []string{
			"add local " + a + " (table 2) weight 7 to row " + vip,
		}},
		{"another table, others drain", in(2, row(a, b, c), b), in(2, changed(func(r *Row) { r.Draining = []Local{drained(b)} }, a, c), c), []string{
			"add local " + c + " (table 2) weight 7 to row " + vip, "drain local " + b + " of row " + vip,
		}},
		{"another table, without pads", unpadded(a, b, c), in(2, unpadded(a, b, c), c), []string{
			"add local " + c + " (table 2) weight 7 to row " + vip, "delete local " + c + " from row " + vip,
		}},
		{"another table, one without pads", unpadded(a), in(2, unpadded(a), a), []string{
			"delete row " + vip + ", replaced: " + oneByOne, "add row " + vip + " out2in-only,self-twice-nat -> 1 backends",
		}},
		{"odd", changed(func(r *Row) { r.odd = true }, a, b), row(a, b), replaced(entries)},
		{"without pads before", unpadded(a, b), row(a, b), replaced(entries)},
		{"without pads, two to three", unpadded(a, b), unpadded(a, b, c), []string{"add local " + c + " weight 7 to row " + vip}},
		{"without pads, three to two", unpadded(a, b, c), unpadded(a, c), []string{"delete local " + b + " from row " + vip}},
		{"without pads, one to two", unpadded(a), unpadded(a, b), replaced(oneByOne)},
		{"without pads, two to one", unpadded(a, b), unpadded(a), []string{
			"delete row " + vip + ", replaced: " + oneByOne, "add row " + vip + " out2in-only,self-twice-nat -> 1 backends",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, "operations", tt.ops, describe(DiffRow(tt.have, tt.want))) })
	}
}

// TestDiffRowFull checks that additions that do not fit wait for deletions: a 256th entry would
// make VPP hang.
func TestDiffRowFull(t *testing.T) {
	const vip = "10.96.0.1:80/TCP"
	for _, n := range []int{36, MaxBackends} {
		for _, pads := range []bool{true, false} {
			have, want := newRow(vip), newRow(vip)
			have.Locals, have.Pads, want.Pads = many(n), pads, pads
			want.Locals = many(n)
			for i := range want.Locals {
				want.Locals[i].Addr = netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)})
			}
			ops := DiffRow(&have, &want)
			most := 2 * n
			if pads && n == 36 {
				most++ // it grows
			}
			if len(ops) > most || ops[0].Verb == DelRow {
				t.Fatalf("%d backends exchanged in %d operations", n, len(ops))
			}
			for i, op := range ops {
				if err := op.Check(); err != nil {
					t.Fatalf("operation %d: %v", i, err)
				}
			}
		}
	}
}

// TestDiffRowHeavy: a row whose weights leave no room is replaced rather than emptied.
func TestDiffRowHeavy(t *testing.T) {
	have, want := newRow("10.96.0.1:80/TCP", "10.1.1.1:80"), newRow("10.96.0.1:80/TCP", "10.1.1.2:80")
	have.Locals[0].Weight = 255
	if ops := DiffRow(&have, &want); len(ops) != 2 || ops[0].Verb != DelRow || ops[1].Verb != AddRow {
		t.Errorf("operations %v", ops)
	}
}
