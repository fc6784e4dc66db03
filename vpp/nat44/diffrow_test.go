package nat44

import (
	"net/netip"
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
	replaced := []string{"delete row " + vip, "add row " + vip + " out2in-only,self-twice-nat -> 2 backends"}
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
		{"grows", row(a), row(a, b, c), []string{"add local " + b + " weight 7 to row " + vip, "add local " + c + " weight 7 to row " + vip}},
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
			replaced,
		},
		{"flags", changed(func(r *Row) { r.Flags = Out2InOnly | TwiceNAT }, a, b), row(a, b), replaced},
		{"affinity", changed(func(r *Row) { r.Affinity = 60 }, a, b), row(a, b), replaced},
		{"tag", changed(func(r *Row) { r.Tag = "troupe/x" }, a, b), row(a, b), replaced},
		{"weight", changed(func(r *Row) { r.Locals[1].Weight = 1 }, a, b), row(a, b), replaced},
		{"odd", changed(func(r *Row) { r.odd = true }, a, b), row(a, b), replaced},
		{"without pads before", unpadded(a, b), row(a, b), replaced},
		{"without pads, two to three", unpadded(a, b), unpadded(a, b, c), []string{"add local " + c + " weight 7 to row " + vip}},
		{"without pads, three to two", unpadded(a, b, c), unpadded(a, c), []string{"delete local " + b + " from row " + vip}},
		{"without pads, one to two", unpadded(a), unpadded(a, b), replaced},
		{"without pads, two to one", unpadded(a, b), unpadded(a), []string{
			"delete row " + vip, "add row " + vip + " out2in-only,self-twice-nat -> 1 backends",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, "operations", tt.ops, describe(DiffRow(tt.have, tt.want))) })
	}
}

// TestDiffRowFull checks that additions that do not fit wait for deletions: a 256th entry would make VPP hang.
func TestDiffRowFull(t *testing.T) {
	const vip = "10.96.0.1:80/TCP"
	for _, n := range []int{36, MaxBackends} {
		have, want := newRow(vip), newRow(vip)
		have.Locals = many(n)
		want.Locals = many(n)
		for i := range want.Locals {
			want.Locals[i].Addr = netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)})
		}
		ops := DiffRow(&have, &want)
		if len(ops) != 2*n {
			t.Fatalf("%d backends exchanged in %d operations", n, len(ops))
		}
		for i, op := range ops {
			if err := op.Check(); err != nil {
				t.Fatalf("operation %d: %v", i, err)
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
