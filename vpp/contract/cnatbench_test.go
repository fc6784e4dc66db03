package contract

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// BenchmarkTranslations programs 10,000 translations with five backends each into an empty VPP: by
// the messages alone, pipelined, and with all that the renderer does from the wanted rows on.
func BenchmarkTranslations(b *testing.B) {
	path, plugins, why := realvpp.Find()
	if why != "" {
		b.Skip(why)
	}
	want := &cnat.Want{SNAT: cnat.NoSNAT(), Rows: map[rule.Key]cnat.Row{}}
	var bare []api.Message
	for i := range uint32(10000) {
		vip := [16]byte{0: 0xfd, 3: 0x96}
		binary.BigEndian.PutUint32(vip[12:], i)
		row := cnat.Row{Key: rule.Key{Addr: netip.AddrFrom16(vip), Port: 80, Proto: rule.TCP}}
		texts := make([]string, 5)
		for j := range uint32(5) {
			pod := [16]byte{0: 0xfd, 3: 0x01}
			binary.BigEndian.PutUint32(pod[12:], 8*i+j)
			row.Backends = append(row.Backends, netip.AddrPortFrom(netip.AddrFrom16(pod), 8080))
			texts[j] = netip.AddrFrom16(pod).String()
		}
		want.Rows[row.Key] = row
		bare = append(bare, translation(row.Addr.String(), texts...))
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			v := newRig(b, real{realvpp.Start(b, path, plugins)})
			b.StartTimer()
			answers, err := v.link.Do(b.Context(), bare)
			if err != nil || answers[len(answers)-1].Err != nil {
				b.Fatal(err, answers[len(answers)-1].Err)
			}
		}
	})
	b.Run("renderer", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			v := newRig(b, real{realvpp.Start(b, path, plugins)})
			b.StartTimer()
			have, err := cnat.Read(b.Context(), v.link, false, nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			for _, r := range cnat.Apply(b.Context(), v.link, cnat.Diff(have, want, true)) {
				if r.Err != nil {
					b.Fatal(r.Err)
				}
				have.Record(r.Op)
			}
		}
	})
}
