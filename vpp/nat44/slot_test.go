package nat44

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestParseSlots reads layouts as VPP would return them, whole and after any edit of a change.
func TestParseSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := make([]slot, rapid.SampledFrom([]int{2, 4, 8, maxSlots}).Draw(t, "size"))
		for i := range slots {
			if rapid.Bool().Draw(t, "used") {
				slots[i] = slot{backend: backendAt(i), weight: 7, share: uint8(rapid.IntRange(0, 7).Draw(t, "share"))}
			}
		}
		torn := rapid.IntRange(-1, len(slots)-1).Draw(t, "torn")
		if torn >= 0 {
			at := &slots[torn]
			switch rapid.IntRange(0, 2).Draw(t, "missing") {
			case 0:
				at.noPad, at.share = true, at.weight
			case 1:
				*at = slot{noBackend: true}
			default:
				if torn < len(slots)-1 { // at the end nothing shows that the slot was there
					*at = slot{noBackend: true, noPad: true}
				} else {
					*at = slot{noBackend: true}
				}
			}
		}
		got, _, whole, ok := parseSlots(entries(slots))
		if !ok || whole != (torn < 0) || !slices.Equal(got, slots) {
			t.Fatalf("%+v is read as %+v, whole %v, ok %v", slots, got, whole, ok)
		}
	})
}

// TestParseSlotsRefuses: rows of other forms, among them a pad that does not belong to its place.
func TestParseSlotsRefuses(t *testing.T) {
	whole := entries([]slot{{backend: backendAt(0), weight: 7, share: 7}, {}, {}, {}})
	for name, change := range map[string]func([]Local) []Local{
		"the same":               func(all []Local) []Local { return all },
		"without pads":           func(all []Local) []Local { return []Local{all[0], newLocal(backendAt(1), 7)} },
		"pads exchanged":         func(all []Local) []Local { all[1], all[3] = all[3], all[1]; return all },
		"placeholders exchanged": func(all []Local) []Local { all[2], all[6] = all[6], all[2]; return all },
		"a heavy placeholder":    func(all []Local) []Local { all[2].Weight = 1; return all },
		"backends without slots": func(all []Local) []Local {
			return append(all, newLocal(backendAt(1), 7), newLocal(backendAt(2), 7), all[0])
		},
	} {
		if _, _, _, ok := parseSlots(change(slices.Clone(whole))); ok != (name == "the same") {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

// TestPlace: a row that looks like a new one remembers no slots, another one does.
func TestPlace(t *testing.T) {
	row, held := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80", "10.1.1.3:80"), Row{}
	held.place(row.layout())
	if held.slots != nil || !slices.Equal(held.Locals, row.Locals) || held.torn {
		t.Errorf("%+v", held)
	}
	slots := row.layout()
	slots[0], slots[3] = slots[3], slots[0]
	slots[1].share = 0
	held.place(slots)
	if held.slots == nil || len(held.Locals) != 2 || len(held.Draining) != 1 || held.Draining[0].Weight != 0 {
		t.Errorf("%+v", held)
	}
	held.place(slots[:3])
	if !held.torn {
		t.Error("three slots are not seen as an interrupted change")
	}
}

// TestMend: whatever part of a change of one slot VPP has refused, the row is completed in place.
func TestMend(t *testing.T) {
	const vip = "10.96.0.1:80/TCP"
	row := newRow(vip, "10.1.1.1:80", "10.1.1.2:80", "10.1.1.3:80")
	for name, change := range map[string]func([]Local) []Local{
		"the pad of another backend": func(all []Local) []Local { all[1].Weight = 3; return all },
		"a pad without a backend":    func(all []Local) []Local { all[7].Weight = 249; return all },
		"a pad of a missing backend": func(all []Local) []Local { all[3].Weight = 249; return append(all[:2], all[3:]...) },
		"no pad":                     func(all []Local) []Local { return append(all[:3], all[4:]...) },
		"neither backend, nor pad":   func(all []Local) []Local { return append(all[:2], all[4:]...) },
		"neither, at the end":        func(all []Local) []Local { return all[:6] },
		"a placeholder at the end":   func(all []Local) []Local { return append(all, newLocal(reservedAt(1, emptyPort), 0)) },
		"an entry of the next slots": func(all []Local) []Local { return append(all, newLocal(reservedAt(4, emptyPort), 0)) },
		"some slots of those to come": func(all []Local) []Local {
			return append(all, newLocal(reservedAt(4, emptyPort), 0), newLocal(reservedAt(4, padPort), 0))
		},
	} {
		m := newModel()
		m.enabled, m.sessions = true, 1000
		m.load(row)
		held := m.rows[row.Key]
		before := slices.Clone(held.locals)
		var all []Local
		for _, l := range before {
			all = append(all, Local{Addr: netip.AddrFrom4(l.Addr), Port: l.Port, Weight: l.Probability})
		}
		all = change(all)
		held.locals = nil
		for _, l := range all {
			held.locals = append(held.locals, wireLocal(l))
		}
		// The place of the missing entry is free in VPP.
		for i := range before {
			if len(all) < len(before) && (i >= len(all) || held.locals[i].Addr != before[i].Addr || held.locals[i].Port != before[i].Port) {
				held.locals = slices.Insert(held.locals, i, before[i])
				held.free = append([]int{i}, held.free...)
				if all = append(all, Local{}); len(all) == len(before) {
					break
				}
			}
		}
		have := m.read(t).Rows[row.Key]
		for _, op := range DiffRow(&have, &row) {
			if op.Verb == DelRow {
				t.Fatalf("%s: the row is replaced", name)
			}
			if result := Apply(t.Context(), m, []Op{op})[0]; result.Err != nil {
				t.Fatalf("%s: %v", name, result.Err)
			}
		}
		if got := m.read(t).Rows[row.Key]; !got.Equal(row) {
			t.Errorf("%s: VPP holds %+v, torn %v", name, got.layout(), got.torn)
		}
	}
}
