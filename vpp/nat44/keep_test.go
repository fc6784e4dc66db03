package nat44

import (
	"net/netip"
	"slices"
	"testing"
)

// ofWeight returns a row of n backends of this weight, as VPP would hold it.
func ofWeight(n int, weight uint8) Row {
	r := newRow("10.96.0.1:80/TCP")
	r.Locals = many(n)
	for i := range r.Locals {
		r.Locals[i].Weight = weight
	}
	r.Tag = Tag{Hash: ServiceHash("default/web")}.String()
	return r
}

// TestRowsKeepTheirWeight changes the number of backends of rows without slots that have the weight
// of another class.
func TestRowsKeepTheirWeight(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		weight   uint8
		to       int
		ops      int // 2 with a deletion of the row, or one for each backend
		replaced bool
	}{
		{"the 37th backend comes", 36, 7, 37, 2, true},
		{"the 37th backend goes", 37, 2, 36, 1, false},
		{"one of two goes, and a lone one cannot be changed", 2, 2, 1, 2, true},
		{"one of few that were many goes and one comes", 3, 2, 3, 0, false},
		{"the 128th backend goes", 128, 1, 127, 1, false},
		{"half of them are gone", 65, 1, 64, 1, false},
		{"more than half of them are gone", 64, 1, 63, 2, true},
		{"many come at once", 2, 7, 120, 2, true},
		{"most go at once", 200, 1, 2, 2, true},
		{"another version chose the weight", 2, 20, 3, 1, false},
		{"another version chose the weight, and it does not fit any more", 12, 20, 13, 2, true},
		{"a weight of 0", 3, 0, 2, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, want := ofWeight(c.n, c.weight), newRow("10.96.0.1:80/TCP")
			have.Pads, want.Pads = false, false
			want.Locals = many(c.to)
			want.Tag = Tag{Hash: ServiceHash("default/web")}.String()
			ops := DiffRow(&have, &want)
			if replaced := len(ops) > 0 && ops[0].Verb == DelRow; len(ops) != c.ops || replaced != c.replaced {
				t.Fatalf("operations %v", ops)
			}
			after := settle(t, have, want, ops)
			if c.replaced {
				check(t, "row", want, after)
			} else if after.Locals[0].Weight != c.weight || after.Tag != have.Tag || len(after.Locals) != c.to {
				t.Errorf("row is %+v", after)
			}
		})
	}
}

// settle records the operations on a row, expects that nothing is left to do, and returns the row.
func settle(t *testing.T, have, want Row, ops []Op) Row {
	t.Helper()
	state := NewState()
	state.Rows[have.Key] = have
	for _, op := range ops {
		if err := op.Check(); err != nil && len(have.Locals) > 0 && have.Locals[0].Weight > 0 {
			t.Fatal(err)
		}
		state.Record(op)
	}
	after := state.Rows[have.Key]
	check(t, "second time", nil, describe(DiffRow(&after, &want)))
	wanted := &Want{Rows: byKey(want)}
	if again := diffRows(state, wanted, true); len(again) > 0 {
		t.Errorf("operations %v are left", again)
	}
	return after
}

// TestSharesChangeInPlace: no number of backends replaces a row with slots. The shares follow the
// number, and stay where they are fair.
func TestSharesChangeInPlace(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		weight uint8
		to     int
		drains int
		ops    int
		share  uint8
	}{
		{"a backend comes", 5, 7, 6, 0, 1, 7},
		{"the 37th backend comes", 36, 7, 37, 0, 37, 2},
		{"the 37th backend goes", 37, 2, 36, 0, 1, 2},
		{"most go", 100, 2, 3, 0, 97, 2},
		{"all places are taken", 127, 2, 127, 0, 0, 2},
		{"one drains", 5, 7, 4, 1, 1, 7},
		{"one of 34 drains", 35, 7, 34, 1, 1, 7},
		{"one of 36 drains", 36, 7, 35, 1, 1, 7},
		{"20 of 127 drain", 127, 2, 107, 20, 20, 2},
		{"one of 127 drains", 127, 2, 126, 1, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, want := ofWeight(c.n, c.weight), newRow("10.96.0.1:80/TCP")
			all := many(c.to + c.drains)
			want.Locals, want.Draining = slices.Clone(all[:c.to]), all[c.to:]
			for i := range want.Draining {
				want.Draining[i].Weight = 0
			}
			ops := DiffRow(&have, &want)
			if len(ops) != c.ops || len(ops) > 0 && ops[0].Verb == DelRow {
				t.Fatalf("%d operations %v", len(ops), ops)
			}
			for _, op := range ops {
				if n := len(Messages(op)); n > 4 && op.Verb != Grow {
					t.Errorf("%s: %d messages", op, n)
				}
			}
			after := settle(t, have, want, ops)
			if after.Locals[0].Weight != c.share || after.Tag != have.Tag || len(after.Locals) != c.to || len(after.Draining) != c.drains {
				t.Errorf("row is %+v", after)
			}
			checkShares(t, after.layout())
		})
	}
}

// TestRowsKeepTheirTag: the row keeps tags with another weight, but not tags of other services.
func TestRowsKeepTheirTag(t *testing.T) {
	want := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80")
	for _, c := range []struct {
		name, hash string
		affinity   uint32
		kept       bool
	}{
		{"of this version", ServiceHash("default/web"), 0, true},
		{"of another service", ServiceHash("default/dns"), 0, false},
		{"with an affinity", ServiceHash("default/web"), 60, false},
		{"of an unknown form", "x", 0, false},
	} {
		have := want.clone()
		have.Affinity = c.affinity
		have.Tag = Tag{Hash: c.hash, Affinity: c.affinity}.String()
		have.odd = c.hash == "x"
		if ops := DiffRow(&have, &want); len(ops) == 0 != c.kept {
			t.Errorf("tag %s: operations %v", c.name, ops)
		}
		grown := want.clone()
		grown.Locals = append(grown.Locals, Local{Addr: netip.MustParseAddr("10.1.1.3"), Port: 80, Weight: 7})
		if ops := DiffRow(&have, &grown); (ops[0].Verb != DelRow) != c.kept {
			t.Errorf("tag %s, another backend: operations %v", c.name, ops)
		}
		if same := want.SameService(&have); same != (c.kept || c.affinity > 0) {
			t.Errorf("tag %s: the same service: %v", c.name, same)
		}
	}
}

// TestBesideLeavesOthersAlone: where nothing can be kept the row stays as planned, and the planned
// row is never changed.
func TestBesideLeavesOthersAlone(t *testing.T) {
	want := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80")
	planned := want.clone()
	held := want.with(func(r *Row) { r.Locals[0].Weight, r.Locals[1].Weight = 2, 2 })
	if got := want.Beside(&held); got.Locals[0].Weight != 2 || !got.Equal(held) {
		t.Errorf("beside a row of weight 2: %+v", got)
	}
	for name, other := range map[string]*Row{
		"nothing": nil, "no pads, and mixed weights": pointerTo(held.with(func(r *Row) { r.Locals[0].Weight, r.Pads = 1, false })), "no backend": pointerTo(held.with(func(r *Row) { r.Locals = nil })),
		"odd": pointerTo(held.with(func(r *Row) { r.odd = true })),
	} {
		check(t, "beside "+name, planned, want.Beside(other))
	}
	check(t, "planned", planned, want)
	unusual := held.with(func(r *Row) { r.Locals[0].Weight = 1 })
	if ops := DiffRow(&unusual, &unusual); len(ops) > 0 {
		t.Errorf("a row differs from itself: %v", ops)
	}
}

func pointerTo(r Row) *Row { return &r }
