package nat44

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// genLocals draws the backends of a row, all of the weight of their class, out of so few that two
// rows have some in common.
func genLocals(t *rapid.T, largest int) []Local {
	hosts := rapid.SliceOfNDistinct(rapid.IntRange(0, largest+largest/4), 1, largest, rapid.ID[int]).Draw(t, "backends")
	slices.Sort(hosts)
	all := make([]Local, len(hosts))
	for i, host := range hosts {
		table := rapid.SampledFrom([]uint32{0, 0, 0, 2}).Draw(t, "table")
		all[i] = Local{Addr: netip.AddrFrom4([4]byte{10, 1, byte(host >> 8), byte(host)}), Port: 8080, Table: table, Weight: Weight(len(hosts))}
	}
	return all
}

// genRow draws a row as Plan makes them.
func genRow(t *rapid.T, key rule.Key, pads bool) Row {
	largest := rapid.SampledFrom([]int{1, 3, 3, 40, 130, MaxBackends}).Draw(t, "largest")
	row := Row{
		Key: key, Flags: Out2InOnly | rapid.SampledFrom([]Flags{SelfTwiceNAT, TwiceNAT}).Draw(t, "flags"), Pads: pads,
		Affinity: rapid.SampledFrom([]uint32{0, 0, 0, 60, 10800}).Draw(t, "affinity"), Locals: genLocals(t, largest),
	}
	hash := ServiceHash(rapid.SampledFrom([]string{"default/web", "default/web", "default/web", "default/dns"}).Draw(t, "service"))
	row.Tag = Tag{Hash: hash, Affinity: row.Affinity}.String()
	return row
}

// genRows draws rows under few keys.
func genRows(t *rapid.T, pads bool) map[rule.Key]Row {
	rows := map[rule.Key]Row{}
	for i := range rapid.IntRange(0, 4).Draw(t, "rows") {
		key := rule.Key{Addr: netip.AddrFrom4([4]byte{10, 96, 0, byte(i)}), Port: 80, Proto: rule.TCP}
		if rapid.Bool().Draw(t, "present") {
			rows[key] = genRow(t, key, pads)
		}
	}
	return rows
}

// genWant draws what VPP should hold.
func genWant(t *rapid.T, pads bool) *Want {
	want := &Want{Rows: genRows(t, pads), Interfaces: map[uint32]bool{}}
	want.SessionLimit = rapid.SampledFrom([]uint32{0, 1000, 100000}).Draw(t, "sessions")
	want.Timeouts.UDP = rapid.SampledFrom([]uint32{0, 30, 300}).Draw(t, "udp")
	if rapid.Bool().Draw(t, "twice-NAT") {
		want.TwiceNAT = loopback
		want.Retired = []netip.Addr{netip.MustParseAddr("10.1.1.253")}
	}
	for index := range uint32(4) {
		switch rapid.IntRange(0, 2).Draw(t, "interface") {
		case 0:
			want.Interfaces[index] = true
		case 1:
			want.Interfaces[index] = false
		}
	}
	return want
}

// genModel draws a VPP that has been in use before.
func genModel(t *rapid.T, pads bool) *model {
	m := newModel()
	if rapid.IntRange(0, 4).Draw(t, "enabled") == 0 {
		return m
	}
	m.enabled, m.sessions = true, rapid.SampledFrom([]uint32{1000, 64512}).Draw(t, "had sessions")
	m.forwarding = rapid.Bool().Draw(t, "forwarding")
	if rapid.Bool().Draw(t, "had twice-NAT") {
		m.twice = []netip.Addr{netip.MustParseAddr("10.1.1.253"), netip.MustParseAddr("10.8.8.8")}
	}
	for _, row := range genRows(t, pads) {
		m.load(row)
	}
	affinity := slices.ContainsFunc(slices.Collect(maps.Values(m.rows)), func(r *modelRow) bool { return r.affinity > 0 })
	for index := range uint32(5) {
		roles := rapid.SampledFrom([]Roles{0, 0, Both, Outside, Inside}).Draw(t, "had roles")
		if affinity && roles == Inside {
			roles = Both
		}
		if roles != 0 {
			m.roles[index] = roles
		}
	}
	for i := range 5 {
		if addr := netip.AddrFrom4([4]byte{10, 96, 0, byte(i)}); rapid.IntRange(0, 2).Draw(t, "received") == 0 {
			m.received[addr] = true
		}
	}
	if rapid.Bool().Draw(t, "foreign") {
		m.static[rule.Key{Addr: netip.AddrFrom4([4]byte{10, 96, 0, 77}), Port: 80, Proto: rule.TCP}] = "other client"
	}
	return m
}

// foreignAddr is the address that another client of VPP has, if there is one.
func (m *model) foreignAddr() (addr netip.Addr) {
	for key := range m.static {
		addr = key.Addr
	}
	return addr
}

// apply applies operations and fails the test where one does not succeed or VPP dies.
func (m *model) apply(t *rapid.T, ops []Op) {
	for _, result := range Apply(context.Background(), m, ops) {
		if result.Err != nil || result.Unknown {
			t.Fatalf("%s: error %v, unknown %v", result.Op, result.Err, result.Unknown)
		}
		if m.died != "" {
			t.Fatalf("VPP died: %s; operations:\n%v", m.died, ops)
		}
	}
}

func (m *model) mustRead(t *rapid.T) *State {
	state, err := Read(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestDiffConverges: whatever VPP holds, the operations turn it into what it should hold, every
// operation succeeds, VPP survives each, and a second round has nothing to do. Record foresees the
// result of a read.
func TestDiffConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pads := rapid.Bool().Draw(t, "pads")
		m, want := genModel(t, pads), genWant(t, rapid.Bool().Draw(t, "same pads") == pads)
		have := m.mustRead(t)
		before := maps.Clone(have.Rows)

		ops := Diff(have, want, true)
		if have.Another(want) != "" {
			if len(ops) > 0 {
				t.Fatalf("beside another client: %v", ops)
			}
			return
		}
		m.apply(t, ops)

		for _, op := range ops {
			have.Record(op)
		}
		got := m.mustRead(t)
		if again := Diff(got, want, true); len(again) > 0 {
			t.Fatalf("operations\n%v\nleave\n%v", ops, again)
		}
		if again := Diff(have, want, true); len(again) > 0 {
			t.Fatalf("operations\n%v\nare recorded so that these are left\n%v", ops, again)
		}
		if d := diff(want.beside(before), got.Rows); d != "" {
			t.Fatalf("rows (-want +got):\n%s", d)
		}
		for addr := range m.received {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(m.rows)), func(k rule.Key) bool { return k.Addr == addr }) && addr != m.foreignAddr() {
				t.Fatalf("%s is left behind", addr)
			}
		}
		// rows that were there before a role were added to it
		have.Received, got.Received = nil, nil
		have.Fresh = nil // what a read cannot tell
		got.Fresh = nil
		slices.SortFunc(have.TwiceNAT, netip.Addr.Compare)
		slices.SortFunc(got.TwiceNAT, netip.Addr.Compare)
		if d := diff(got, have); d != "" {
			t.Fatalf("recorded (-read +recorded):\n%s", d)
		}
	})
}

// beside returns the wanted rows beside the held ones: a row that need not be replaced keeps its
// weights and its tag.
func (w *Want) beside(held map[rule.Key]Row) map[rule.Key]Row {
	rows := map[rule.Key]Row{}
	for key, row := range w.Rows {
		old, found := held[key]
		if ops := DiffRow(&old, &row); found && (len(ops) == 0 || ops[0].Verb != DelRow) {
			row = row.Beside(&old)
		}
		rows[key] = row
	}
	return rows
}

func sameEndpoint(a, b Local) bool { return compareEndpoint(a, b) == 0 }

// TestDiffWithoutSweep: without sweep no unwanted row of ours is deleted, and every wanted row is
// there.
func TestDiffWithoutSweep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := genModel(t, true), genWant(t, true)
		before := m.mustRead(t)
		if before.Another(want) != "" {
			return
		}
		m.apply(t, Diff(before, want, false))
		after := m.mustRead(t)
		for key, row := range before.Rows {
			if _, wanted := want.Rows[key]; !wanted && !after.Rows[key].Equal(row) {
				t.Fatalf("the unwanted row %s has changed", key)
			}
		}
		for key, row := range want.Rows {
			if got := after.Rows[key]; len(DiffRow(&got, &row)) > 0 || !slices.EqualFunc(got.Locals, row.Locals, sameEndpoint) {
				t.Fatalf("the wanted row %s is not there", key)
			}
		}
	})
}

// TestRowKeepsBackends: while one row becomes another, no operation loses a backend that both have,
// except the moment between two neighbouring operations that replace the row; and VPP holds a real
// backend at any time.
func TestRowKeepsBackends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, pads := mustKey("10.96.0.1:80/TCP"), rapid.Bool().Draw(t, "pads")
		have, want := genRow(t, key, pads), genRow(t, key, pads)
		if rapid.Bool().Draw(t, "same shape") {
			want.Flags, want.Affinity = have.Flags, have.Affinity
			tag, _ := ParseTag(have.Tag)
			want.Tag = Tag{Hash: tag.Hash, Affinity: tag.Affinity}.String()
		}
		kept := slices.DeleteFunc(slices.Clone(have.Locals), func(l Local) bool { return !slices.Contains(want.Locals, l) })

		m := newModel()
		m.enabled, m.sessions = true, 1000
		m.load(have)
		replaced := false
		m.after = func(msg api.Message) {
			row, found := m.rows[key]
			if replaced = replaced || !found; !found {
				return
			}
			held := map[string]bool{}
			for _, l := range row.locals {
				held[fmt.Sprintf("%s:%d", l.Addr, l.Port)] = true
			}
			for _, l := range kept {
				if !held[l.String()] {
					t.Fatalf("%s is lost by %+v", l, msg)
				}
			}
		}
		ops := DiffRow(&have, &want)
		m.apply(t, ops)
		if replaced && len(ops) != 2 {
			t.Fatalf("the row is away for more than one operation: %v", ops)
		}
		if replaced && want.Flags == have.Flags && want.SameService(&have) && want.Affinity+have.Affinity == 0 && want.Pads {
			t.Fatalf("the row was replaced without need: %v", ops)
		}
		expected := want
		if !replaced {
			expected = want.Beside(&have)
		}
		if got := m.mustRead(t).Rows[key]; !got.Equal(expected) {
			t.Fatalf("VPP holds %+v, want %+v", got, expected)
		}
	})
}

// TestDiffIsMinimal: a row that is as wanted is not touched by changes of other rows, and every
// local that is only on one side is touched once.
func TestDiffIsMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := genModel(t, true), genWant(t, true)
		have := m.mustRead(t)
		touched := map[rule.Key]int{}
		for _, op := range Diff(have, want, true) {
			if op.OnRow() && op.Verb != Grow && op.Verb != SetShare {
				touched[op.Key]++
			}
		}
		for key, n := range touched {
			old, had := have.Rows[key]
			row, wanted := want.Rows[key]
			if had && wanted && old.Equal(row.Beside(&old)) {
				t.Fatalf("the unchanged row %s is touched", key)
			}
			if most := max(2, apart(old.Locals, row.Locals)+apart(row.Locals, old.Locals)); n > most {
				t.Fatalf("row %s is changed in %d operations, want at most %d", key, n, most)
			}
		}
	})
}

// apart counts the locals of a whose entries are not in b.
func apart(a, b []Local) (n int) {
	for _, l := range a {
		if !slices.ContainsFunc(b, func(o Local) bool { return compareEntry(o, l) == 0 }) {
			n++
		}
	}
	return n
}

// TestDiffOfEqualIsNothing: the state of a VPP that holds what it should gives no operation.
func TestDiffOfEqualIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := newModel(), genWant(t, rapid.Bool().Draw(t, "pads"))
		m.apply(t, Diff(m.mustRead(t), want, true))
		before := m.count
		if ops := Diff(m.mustRead(t), want, true); len(ops) != 0 {
			t.Fatalf("operations %v", ops)
		}
		if m.count != before {
			t.Fatal("reading has written")
		}
	})
}
