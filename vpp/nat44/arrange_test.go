package nat44

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// genGoal draws the next wanted row of a service: some of the backends of a small or a large pool
// are used, others drain.
func genGoal(t *rapid.T, key rule.Key, pool int) Row {
	row := newRow(key.String())
	most := rapid.SampledFrom([]int{1, 3, pool}).Draw(t, "most")
	for i := range pool {
		switch use := rapid.IntRange(0, 3).Draw(t, "use"); {
		case use == 0 && len(row.Locals) < min(most, MaxBackends):
			l := newLocal(backendAt(i), 0)
			l.Table = rapid.SampledFrom([]uint32{0, 0, 0, 2}).Draw(t, "table")
			row.Locals = append(row.Locals, l)
		case use == 1:
			row.Draining = append(row.Draining, newLocal(backendAt(i), 0))
		}
	}
	for i := range row.Locals {
		row.Locals[i].Weight = Weight(len(row.Locals))
	}
	return row
}

// TestAnySequenceOfChanges: whatever a service wants next, the row is never replaced, VPP survives
// every message, and packets reach only backends of the row before or after. Connections end only
// with backends that are neither wanted nor drain, or wanted in another table; at the end each
// backend has its share. An agent
// that is killed after any message, and reads VPP, goes on without a loss.
func TestAnySequenceOfChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := mustKey("10.96.0.1:80/TCP")
		pool := rapid.SampledFrom([]int{3, 6, 20, 50, 160}).Draw(t, "pool")
		m := newModel()
		m.enabled, m.sessions = true, 1000
		m.load(newRow(key.String(), "10.1.0.0:8080"))
		held := map[netip.AddrPort]bool{}
		m.after = func(api.Message) {
			if m.died != "" {
				t.Fatal(m.died)
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			state := m.mustRead(t)
			have, want := state.Rows[key], genGoal(t, key, pool)
			target := Target(&have, &want)
			before := slices.Concat(have.Locals, have.Draining)
			ops := DiffRow(&have, &want)
			if target == nil {
				if len(ops) != 1 || ops[0].Verb != DelRow {
					t.Fatalf("operations %v", ops)
				}
				break
			}
			for _, l := range slices.Concat(have.Locals, have.Draining) {
				held[l.Endpoint()] = slices.ContainsFunc(slices.Concat(target.Locals, target.Draining), func(o Local) bool { return compareEntry(o, l) == 0 })
			}
			msgs := sequence(t, ops, held)
			kill := rapid.IntRange(0, 2*len(msgs)).Draw(t, "killed after")
			whole := kill >= len(msgs)
			for i := range msgs {
				if i == kill {
					again := m.mustRead(t).Rows[key]
					msgs = sequence(t, DiffRow(&again, &want), held)
					deliver(t, m, msgs, key, before, target)
					break
				}
				deliver(t, m, msgs[i:i+1], key, before, target)
			}
			for _, op := range ops {
				state.Record(op)
			}
			got := m.mustRead(t).Rows[key]
			recorded := state.Rows[key]
			if whole && !got.Equal(*target) || len(DiffRow(&got, &want)) > 0 {
				t.Fatalf("VPP holds %+v, want %+v", got, *target)
			}
			if whole && !slices.Equal(got.layout(), recorded.layout()) {
				t.Fatalf("recorded %+v, VPP holds %+v", recorded.layout(), got.layout())
			}
			checkShares(t, got.layout())
		}
	})
}

// TestAnyRefusal: whichever operations of a part VPP refuses, it survives the others.
func TestAnyRefusal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := mustKey("10.96.0.1:80/TCP")
		pool := rapid.SampledFrom([]int{3, 6, 50}).Draw(t, "pool")
		m := newModel()
		m.enabled, m.sessions = true, 1000
		m.load(newRow(key.String(), "10.1.0.0:8080"))
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			have, want := m.mustRead(t).Rows[key], genGoal(t, key, pool)
			if Target(&have, &want) == nil {
				return
			}
			ops := Part(DiffRow(&have, &want), 1000)
			refuses := rapid.SliceOfN(rapid.Bool(), 1, 5).Draw(t, "refuses")
			for i, op := range ops {
				if refuses[i%len(refuses)] {
					continue
				}
				for _, msg := range Messages(op) {
					if results, err := m.Do(context.Background(), []api.Message{msg}); err != nil || m.died != "" {
						t.Fatalf("%v: %v %s", results, err, m.died)
					}
				}
			}
		}
	})
}

// sequence returns the messages of operations on one row, none of which may replace the row or
// delete a backend that keeps its connections.
func sequence(t *rapid.T, ops []Op, keeps map[netip.AddrPort]bool) (msgs []api.Message) {
	for _, op := range ops {
		if op.change == nil {
			t.Fatalf("operation %v of %v", op, ops)
		}
		for _, s := range op.change.edits {
			if keeps[s.local.Endpoint()] && !s.add {
				t.Fatalf("%s ends connections to %s", op, s.local)
			}
		}
		if n := len(op.change.edits); n > 4 && op.Verb != Grow {
			t.Fatalf("%s: %d messages", op, n)
		}
		msgs = append(msgs, Messages(op)...)
	}
	return msgs
}

// deliver sends messages and checks after each of them where packets go.
func deliver(t *rapid.T, m *model, msgs []api.Message, key rule.Key, before []Local, target *Row) {
	allowed := map[netip.AddrPort]bool{}
	for _, l := range slices.Concat(before, target.Locals, target.Draining) {
		allowed[l.Endpoint()] = true
	}
	for _, msg := range msgs {
		results, err := m.Do(context.Background(), []api.Message{msg})
		if err != nil || results[0].Err != nil {
			t.Fatalf("%+v: %v", msg, results[0].Err)
		}
		var all []Local
		for _, l := range m.rows[key].live() {
			all = append(all, Local{Addr: netip.AddrFrom4(l.Addr), Port: l.Port, Weight: l.Probability})
		}
		for _, at := range slices.Collect(maps.Keys(picked(all))) {
			if !allowed[at] {
				t.Fatalf("after %+v packets go to %s: %v", msg, at, all)
			}
		}
	}
}

// TestOneBackendCostsFourMessages: a backend that comes, drains, comes back and goes.
func TestOneBackendCostsFourMessages(t *testing.T) {
	const vip = "10.96.0.1:80/TCP"
	row := newRow(vip, "10.1.1.1:80", "10.1.1.2:80", "10.1.1.3:80", "10.1.1.4:80", "10.1.1.5:80")
	four := row.clone()
	four.Locals = four.Locals[:4]
	drains := four.clone()
	drains.Draining = []Local{newLocal(row.Locals[4].Endpoint(), 0)}
	state := NewState()
	state.Rows[row.Key] = row
	for _, c := range []struct {
		name string
		want Row
		msgs int
	}{{"drains", drains, 2}, {"is back", row, 2}, {"drains again", drains, 2}, {"goes", four, 4}, {"comes", row, 2}, {"goes at once", four, 2}} {
		have := state.Rows[row.Key]
		n := 0
		for _, op := range DiffRow(&have, &c.want) {
			n += len(Messages(op))
			state.Record(op)
		}
		if n != c.msgs {
			t.Errorf("it %s: %d messages, want %d", c.name, n, c.msgs)
		}
	}
}

// TestDrainedBackendLeavesWhileRowBecomesFull: 36 backends of weight 7 leave no room for the sum
// while the pad of another backend is deleted, so the drained backend leaves first.
func TestDrainedBackendLeavesWhileRowBecomesFull(t *testing.T) {
	key := mustKey("10.96.0.1:80/TCP")
	have := newRow(key.String(), "10.1.0.0:8080", "10.1.0.1:8080")
	have.place([]slot{{backend: backendAt(0), weight: 7, share: 7}, {backend: backendAt(1), weight: 7}})
	want := newRow(key.String())
	for i := range 37 {
		if i != 1 {
			want.Locals = append(want.Locals, newLocal(backendAt(i), Weight(36)))
		}
	}
	for _, op := range DiffRow(&have, &want) {
		if op.change == nil {
			t.Errorf("the row is replaced: %s", op)
		}
	}
}
