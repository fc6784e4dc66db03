package contract

import (
	"testing"

	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// BenchmarkRows programs 10,000 rows of five backends into a real VPP, gives each one more, and
// says what a row takes of VPP's main heap.
func BenchmarkRows(b *testing.B) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		b.Skip(why)
	}
	const rows = 10_000
	want := func(backends int) *nat44.Want {
		w := &nat44.Want{Rows: make(map[rule.Key]nat44.Row, rows)}
		for i := range uint32(rows) {
			row := nat44.Row{
				Key:   rule.Key{Addr: numbered(false, 96, i), Port: 80, Proto: rule.TCP},
				Flags: nat44.Out2InOnly | nat44.SelfTwiceNAT, Pads: true, Tag: "troupe/rows",
			}
			for j := range uint32(backends) {
				row.Locals = append(row.Locals, nat44.Local{Addr: numbered(false, 10, j), Port: 8080, Weight: nat44.Weight(backends)})
			}
			w.Rows[row.Key] = row
		}
		return w
	}
	program := func(v *rig, have *nat44.State, w *nat44.Want) {
		for _, r := range nat44.Apply(b.Context(), v.link, nat44.Diff(have, w, false)) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
			have.Record(r.Op)
		}
	}
	measure := func(name string, do func(v *rig, have *nat44.State)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			taken := 0
			for b.Loop() {
				b.StopTimer()
				v := newRig(b, real{realvpp.Start(b, binary, plugins)})
				have, err := nat44.Read(b.Context(), v.link)
				if err != nil {
					b.Fatal(err)
				}
				program(v, have, &nat44.Want{})
				before, _ := heap.Read(b.Context(), v.link)
				if name != "added" {
					program(v, have, want(5))
				}
				b.StartTimer()
				do(v, have)
				b.StopTimer()
				after, _ := heap.Read(b.Context(), v.link)
				taken += before.Free - after.Free
				b.StartTimer()
			}
			b.ReportMetric(float64(taken)/float64(b.N)/rows, "B/row")
		})
	}
	measure("added", func(v *rig, have *nat44.State) { program(v, have, want(5)) })
	measure("one more backend", func(v *rig, have *nat44.State) { program(v, have, want(6)) })
}
