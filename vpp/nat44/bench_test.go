package nat44

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{5, 1000} {
		view := &messages.ServiceView{Key: "default/web", Frontends: []*messages.Frontend{serving("10.96.0.1", 80, tcp, endpoints(n)...)}}
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Plan(view, testConfig)
			}
		})
	}
}

// tenThousand returns rows of five backends.
func tenThousand() map[rule.Key]Row {
	rows := make(map[rule.Key]Row, 10000)
	for i := range 10000 {
		row := newRow("10.96.0.1:80/TCP")
		row.Addr, row.Locals = netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), many(5)
		rows[row.Key] = row
	}
	return rows
}

func BenchmarkDiff(b *testing.B) {
	have, want := settled()
	have.Rows, want.Rows = tenThousand(), tenThousand()
	b.Run("rows=10000/unchanged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if ops := Diff(have, want, true); len(ops) != 0 {
				b.Fatal(ops)
			}
		}
	})
	key := mustKey("10.96.7.7:80/TCP")
	changed := want.Rows[key].clone()
	changed.Locals = many(6)
	want.Rows[key] = changed
	b.Run("rows=10000/one-changed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if ops := Diff(have, want, true); len(ops) != 1 {
				b.Fatal(ops)
			}
		}
	})
	b.Run("row/one-changed", func(b *testing.B) {
		b.ReportAllocs()
		old := have.Rows[key]
		for b.Loop() {
			if ops := DiffRow(&old, &changed); len(ops) != 1 {
				b.Fatal(ops)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	m := newModel()
	m.enabled, m.sessions = true, 1000
	for _, row := range tenThousand() {
		m.load(row)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.read(b)
	}
}
