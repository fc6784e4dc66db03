package contract

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// memoryRows is how many rows are added, enough to outweigh what VPP allocates ahead.
const memoryRows = 8192

var memoryCases = []contractCase{
	{"memory/NAT44 rows of one backend", nat44Memory(1)},
	{"memory/NAT44 rows of sixteen backends", nat44Memory(16)},
	{"memory/translations of one backend", cnatMemory(1, false, false)},
	{"memory/translations of sixteen backends", cnatMemory(16, false, false)},
	{"memory/translations of sixteen backends by maglev", cnatMemory(16, true, false)},
	{"memory/translations with addresses of their own", cnatMemory(4, false, true)},
	{"memory/statistics", func(t *testing.T, v *rig) {
		now, err := heap.Read(t.Context(), v.link)
		if err != nil {
			t.Fatal(err)
		}
		old, err := heap.NewStatistics(v.StatsSocket()).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		near := func(a, b int) bool { return max(a, b)-min(a, b) < 8<<20 }
		if !near(now.Total, old.Total) || !near(now.Free, old.Free) || old.Beat < 1 || now.Beat != 0 {
			t.Errorf("VPP says %+v, its statistics %+v", now, old)
		}
	}},
}

// needs checks what rows have taken of the main heap: no more than heap.Cost says, which the agent
// relies on, and not so much less that services would be refused for nothing.
func needs(t *testing.T, v *rig, want int, add func()) {
	t.Helper()
	before, err := heap.Read(t.Context(), v.link)
	if err != nil {
		t.Fatal(err)
	}
	add()
	after, err := heap.Read(t.Context(), v.link)
	if err != nil {
		t.Fatal(err)
	}
	if got := (before.Free - after.Free) / memoryRows; got > want || got < want/4 {
		t.Errorf("a row takes %d bytes, and is expected to take at most %d", got, want)
	}
	if before.Total != after.Total || after.Free > after.Total {
		t.Errorf("heap %+v, then %+v", before, after)
	}
}

func nat44Memory(backends int) func(*testing.T, *rig) {
	return func(t *testing.T, v *rig) {
		have, err := nat44.Read(t.Context(), v.link)
		if err != nil {
			t.Fatal(err)
		}
		want := &nat44.Want{Rows: map[rule.Key]nat44.Row{}}
		for _, r := range nat44.Apply(t.Context(), v.link, nat44.Diff(have, want, false)) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			have.Record(r.Op)
		}
		for i := range uint32(memoryRows) {
			row := nat44.Row{
				Key:   rule.Key{Addr: numbered(false, 96, i/4096), Port: uint16(1 + i%4096), Proto: rule.TCP},
				Flags: nat44.Out2InOnly | nat44.SelfTwiceNAT, Pads: true, Tag: "troupe/memory",
			}
			for j := range uint32(backends) {
				row.Locals = append(row.Locals, nat44.Local{Addr: numbered(false, 10, j), Port: 8080, Weight: 7})
			}
			want.Rows[row.Key] = row
		}
		needs(t, v, heap.NAT44().Of(backends, false), func() {
			for _, r := range nat44.Apply(t.Context(), v.link, nat44.Diff(have, want, false)) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
		})
	}
}

func cnatMemory(backends int, maglev, own bool) func(*testing.T, *rig) {
	return func(t *testing.T, v *rig) {
		var ops []cnat.Op
		for i := range uint32(memoryRows) {
			row := cnat.Row{Key: rule.Key{Addr: numbered(true, 96, i/4096), Port: uint16(1 + i%4096), Proto: rule.TCP}, Maglev: maglev}
			if own {
				row.Addr = numbered(true, 96, i)
			}
			for j := range uint32(backends) {
				if own {
					j += i * uint32(backends)
				}
				row.Backends = append(row.Backends, netip.AddrPortFrom(numbered(true, 10, j), 8080))
			}
			ops = append(ops, cnat.Op{Verb: cnat.PutRow, Key: row.Key, Row: &row})
		}
		want := heap.CNAT().Of(backends, maglev)
		if own {
			want += (1 + backends) * heap.CNAT().Address
		} else {
			want += 1 + (2+backends)*heap.CNAT().Address/memoryRows
		}
		put := func(ops []cnat.Op) {
			for _, r := range cnat.Apply(t.Context(), v.link, ops) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
		}
		put(ops[:1]) // with the first translation 26.06 allocates its tables, 22 MB
		needs(t, v, want, func() { put(ops[1:]) })
	}
}

// numbered is the address with a number in a network of either family.
func numbered(ip6 bool, network byte, i uint32) netip.Addr {
	if !ip6 {
		return netip.AddrFrom4([4]byte{network, byte(1 + i>>16), byte(i >> 8), byte(i)})
	}
	a := [16]byte{0: 0xfd, 3: network}
	binary.BigEndian.PutUint32(a[12:], i+1)
	return netip.AddrFrom16(a)
}
