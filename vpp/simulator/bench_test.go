package simulator

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/codec"

	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// benchRow returns the load-balancing row number i with 5 backends.
func benchRow(i int) *nat44_ed.Nat44AddDelLbStaticMapping {
	vip := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 80)
	var backends []netip.AddrPort
	for b := range 5 {
		backends = append(backends, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(b), byte(i >> 8), byte(i)}), 8080))
	}
	return lb(vip, nat_types.NAT_IS_SELF_TWICE_NAT, 7, backends...)
}

// BenchmarkLBAddPipelined adds 10,000 rows with 5 backends each over the socket, written as fast as
// the socket takes them.
func BenchmarkLBAddPipelined(b *testing.B) {
	const rows = 10_000
	v := listen(b, Options{})
	conn, err := net.Dial("unix", v.Socket())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		b.Fatal(err)
	}
	r := bufio.NewReaderSize(conn, 64<<10)
	hello, _ := codec.EncodeMsg(&memclnt.SockclntCreate{Name: "bench"}, wire.IDSockclntCreate)
	if _, err := conn.Write(frameOf(hello)); err != nil {
		b.Fatal(err)
	}
	frames := wire.NewFrameReader(r, 1<<20)
	payload, err := frames.Next()
	if err != nil {
		b.Fatal(err)
	}
	var table memclnt.SockclntCreateReply
	if err := codec.DecodeMsg(payload, &table); err != nil {
		b.Fatal(err)
	}
	encode := func(msg api.Message) []byte {
		payload, err := codec.EncodeMsg(msg, v.inc.ids.Of(msg.GetMessageName()))
		if err != nil {
			b.Fatal(err)
		}
		binary.BigEndian.PutUint32(payload[2:], table.Index)
		return frameOf(payload)
	}
	var stream []byte
	for i := range rows {
		stream = append(stream, encode(benchRow(i))...)
	}
	reset := append(encode(enable(false, 0)), encode(enable(true, 0))...)
	replies := func(n int) {
		size := wire.FrameHeaderSize + 10
		if _, err := io.CopyN(io.Discard, r, int64(n*size)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if _, err := conn.Write(reset); err != nil {
			b.Fatal(err)
		}
		replies(2)
		b.StartTimer()
		sent := make(chan error, 1)
		go func() {
			_, err := conn.Write(stream)
			sent <- err
		}()
		replies(rows)
		if err := <-sent; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	if n := len(v.Rows()); n != rows {
		b.Fatalf("%d rows", n)
	}
}

// BenchmarkLBDump dumps 10,000 rows with 5 backends each over the socket.
func BenchmarkLBDump(b *testing.B) {
	const rows = 10_000
	v := listen(b, Options{})
	conn := connect(b, v)
	if _, err := v.Exec(enable(true, 0)); err != nil {
		b.Fatal(err)
	}
	for i := range rows {
		if _, err := v.Exec(benchRow(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(dump[nat44_ed.Nat44LbStaticMappingDetails](b, conn, &nat44_ed.Nat44LbStaticMappingDump{})); n != rows {
			b.Fatalf("%d rows", n)
		}
	}
}

// BenchmarkSend pushes the packets of open connections through the oracle.
func BenchmarkSend(b *testing.B) {
	r := newRig(b)
	r.ok(lb(at(vip, 80), selfTwice, 10, at(backendA, 8080), at(backendB, 8080)))
	r.dial(tcp(clientPod, 4000, at(vip, 80)))
	p := tcp(clientPod, 4000, at(vip, 80))
	p.Flags = ACK
	b.ReportAllocs()
	for b.Loop() {
		if v := r.Send(p); v.Action != Delivered {
			b.Fatal(v)
		}
	}
}
