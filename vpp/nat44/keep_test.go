package nat44

import (
	"net/netip"
	"testing"
)

// ofWeight returns a row of n backends of this weight, as VPP would hold it.
func ofWeight(n int, weight uint8) Row {
	r := newRow("10.96.0.1:80/TCP")
	r.Locals = many(n)
	for i := range r.Locals {
		r.Locals[i].Weight = weight
	}
	r.Tag = Tag{Hash: ServiceHash("default/web"), Weight: weight}.String()
	return r
}

// TestRowsKeepTheirWeight changes the number of backends of rows that have the weight of another class.
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
		{"one of two that were many goes", 2, 2, 1, 1, false},
		{"one of few that were many goes and one comes", 3, 2, 3, 0, false},
		{"the 128th backend comes", 127, 2, 128, 2, true},
		{"the 128th backend goes", 128, 1, 127, 1, false},
		{"half of them are gone", 65, 1, 64, 1, false},
		{"more than half of them are gone", 64, 1, 63, 2, true},
		{"many come at once", 2, 7, 200, 2, true},
		{"most go at once", 200, 1, 2, 2, true},
		{"another version chose the weight", 2, 20, 3, 1, false},
		{"another version chose the weight, and it does not fit any more", 12, 20, 13, 2, true},
		{"a weight of 0", 3, 0, 2, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, want := ofWeight(c.n, c.weight), newRow("10.96.0.1:80/TCP")
			want.Locals = many(c.to)
			want.Tag = Tag{Hash: ServiceHash("default/web"), Weight: Weight(c.to)}.String()
			ops := DiffRow(&have, &want)
			if replaced := len(ops) > 0 && ops[0].Verb == DelRow; len(ops) != c.ops || replaced != c.replaced {
				t.Fatalf("operations %v", ops)
			}
			state := NewState()
			state.Rows[have.Key] = have
			for _, op := range ops {
				if err := op.Check(); err != nil && c.weight > 0 {
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
			if c.replaced {
				check(t, "row", want, after)
			} else if after.Locals[0].Weight != c.weight || after.Tag != have.Tag || len(after.Locals) != c.to {
				t.Errorf("row is %+v", after)
			}
		})
	}
}

// TestRowsKeepTheirTag: the tags of earlier versions, and of the same port under another name, will do; those of other services do not.
func TestRowsKeepTheirTag(t *testing.T) {
	want := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80")
	want.FormerHash = portHash("default/web", "http")
	for _, c := range []struct {
		name, hash string
		affinity   uint32
		kept       bool
	}{
		{"of this version", ServiceHash("default/web"), 0, true},
		{"of the first versions", portHash("default/web", "http"), 0, true},
		{"of the first versions, with another name of the port", portHash("default/web", "web"), 0, false},
		{"of another service", ServiceHash("default/dns"), 0, false},
		{"with an affinity", ServiceHash("default/web"), 60, false},
		{"of an unknown form", "x", 0, false},
	} {
		have := want.clone()
		have.FormerHash, have.Affinity = "", c.affinity
		have.Tag = Tag{Hash: c.hash, Affinity: c.affinity, Weight: 7}.String()
		have.odd = c.hash == "x"
		if ops := DiffRow(&have, &want); len(ops) == 0 != c.kept {
			t.Errorf("tag %s: operations %v", c.name, ops)
		}
		grown := want.clone()
		grown.Locals = append(grown.Locals, Local{Addr: netip.MustParseAddr("10.1.1.3"), Port: 80, Weight: 7})
		if ops := DiffRow(&have, &grown); len(ops) == 1 != c.kept {
			t.Errorf("tag %s, another backend: operations %v", c.name, ops)
		}
		if same := want.SameService(&have); same != (c.kept || c.affinity > 0) {
			t.Errorf("tag %s: the same service: %v", c.name, same)
		}
	}
}

// TestBesideLeavesOthersAlone: what cannot be kept leaves the row as it was planned, and never changes the planned one.
func TestBesideLeavesOthersAlone(t *testing.T) {
	want := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80")
	planned := want.clone()
	held := want.with(func(r *Row) { r.Locals[0].Weight, r.Locals[1].Weight = 2, 2 })
	if got := want.Beside(&held); got.Locals[0].Weight != 2 || !got.Equal(held) {
		t.Errorf("beside a row of weight 2: %+v", got)
	}
	for name, other := range map[string]*Row{
		"nothing": nil, "mixed weights": pointerTo(held.with(func(r *Row) { r.Locals[0].Weight = 1 })), "no backend": pointerTo(held.with(func(r *Row) { r.Locals = nil })),
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
