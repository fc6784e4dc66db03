package contract

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// generator sends packets through a real VPP by its own packet generator, which every VPP has: no privileges, no interfaces of the host. It
// replays capture files and writes what leaves its interfaces to others.
type generator struct {
	v       *rig
	raw     *Raw
	dir     string
	streams int
	ports   []*capture
}

// capture is what left an interface of the generator.
type capture struct {
	index interface_types.InterfaceIndex
	id    int
	path  string
	read  int64 // bytes of the file that were read
}

func (r *real) Traffic(t testing.TB, v *rig) traffic {
	return &generator{v: v, raw: newRaw(t, r.Socket()), dir: r.dir}
}

func (g *generator) port(t testing.TB) interface_types.InterfaceIndex {
	t.Helper()
	c := &capture{id: len(g.ports)}
	c.path = filepath.Join(g.dir, fmt.Sprintf("out%d.pcap", c.id))
	results, err := g.v.link.Do(t.Context(), []api.Message{&pg.PgCreateInterfaceV3{
		InterfaceID: interface_types.InterfaceIndex(c.id), Mode: pg.PG_API_MODE_IP4,
	}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		t.Skipf("no packets are sent through this VPP, it has no packet generator: %v", err)
	}
	c.index = results[0].Reply.(*pg.PgCreateInterfaceV3Reply).SwIfIndex
	// Not by pg_capture: VPP 25.10 frees the name of the file before it opens it.
	g.command(t, fmt.Sprintf("packet-generator capture pg%d pcap %s", c.id, c.path))
	g.ports = append(g.ports, c)
	return c.index
}

func (g *generator) exchange(t testing.TB, packets []packet) map[uint64]packet {
	t.Helper()
	for _, c := range g.ports {
		var sent []packet
		for _, p := range packets {
			if p.port == c.index {
				sent = append(sent, p)
			}
		}
		if len(sent) > 0 {
			g.replay(t, c, sent)
		}
	}
	out := map[uint64]packet{}
	for _, c := range g.ports {
		for _, p := range c.take(t) {
			if p.proto == frontend.TCP || p.proto == frontend.UDP {
				out[p.id] = p
			}
		}
	}
	return out
}

// replay has a stream of packets come in through an interface, and waits until VPP has worked on all of them: it does nothing else between
// their arrival and the answer that they have been generated.
func (g *generator) replay(t testing.TB, c *capture, packets []packet) {
	t.Helper()
	g.streams++
	name := fmt.Sprintf("stream%d", g.streams)
	path := filepath.Join(g.dir, name+".pcap")
	if err := os.WriteFile(path, encodeCapture(packets), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(path) }()
	g.command(t, fmt.Sprintf("packet-generator new name %s source pg%d pcap %s", name, c.id, path))
	g.command(t, "packet-generator enable-stream "+name)
	done := fmt.Sprintf(" No %d ", len(packets))
	waitFor(t, "VPP to take the packets", func() bool {
		shown := ask[*vlib.CliInbandReply](t, g.v, &vlib.CliInband{Cmd: "show packet-generator"}).Reply
		return strings.Contains(strings.Join(strings.Fields(shown), " "), name+done)
	})
	g.command(t, "packet-generator delete "+name)
}

// command runs a command of the debug CLI that the link refuses.
func (g *generator) command(t testing.TB, text string) {
	t.Helper()
	if retval := g.raw.retval(t, &vlib.CliInband{Cmd: text}); retval != ok {
		t.Fatalf("%q returned %d", text, retval)
	}
}

// take returns the packets that left since the last time.
func (c *capture) take(t testing.TB) []packet {
	t.Helper()
	file, err := os.Open(c.path)
	if os.IsNotExist(err) {
		return nil // nothing has ever left
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	c.read = max(c.read, captureHeader)
	data, err := io.ReadAll(io.NewSectionReader(file, c.read, math.MaxInt64-c.read))
	if err != nil {
		t.Fatal(err)
	}
	packets, n, err := decodeCapture(data)
	if err != nil {
		t.Fatalf("%s: %v", c.path, err)
	}
	c.read += int64(n)
	for i := range packets {
		packets[i].port = c.index
	}
	return packets
}

// Sizes of capture files, in bytes.
const (
	captureHeader = 24
	recordHeader  = 16
)

// encodeCapture makes a capture file.
func encodeCapture(packets []packet) []byte {
	b := binary.NativeEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, make([]byte, captureHeader-len(b))...)
	for _, p := range packets {
		data := p.encode()
		b = append(b, make([]byte, 8)...) // time
		b = binary.NativeEndian.AppendUint32(b, uint32(len(data)))
		b = binary.NativeEndian.AppendUint32(b, uint32(len(data)))
		b = append(b, data...)
	}
	return b
}

// decodeCapture reads the records of a capture file that are complete, and returns the number of their bytes.
func decodeCapture(b []byte) (packets []packet, read int, err error) {
	for len(b) >= recordHeader {
		n := recordHeader + int(binary.NativeEndian.Uint32(b[8:]))
		if n > len(b) {
			break
		}
		p, err := decodePacket(b[recordHeader:n])
		if err != nil {
			return nil, 0, err
		}
		packets, read, b = append(packets, p), read+n, b[n:]
	}
	return packets, read, nil
}

// Sizes of headers, in bytes.
const (
	ipHeader  = 20
	tcpHeader = 20
	udpHeader = 8
)

// encode makes the bytes of a packet. The checksum of UDP may be 0; that of TCP is not checked.
func (p packet) encode() []byte {
	size := ipHeader + udpHeader + 8
	if p.proto == frontend.TCP {
		size = ipHeader + tcpHeader + 8
	}
	b := make([]byte, size)
	b[0], b[8], b[9] = 0x45, 64, p.proto
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	src, dst := p.src.Addr().As4(), p.dst.Addr().As4()
	copy(b[12:], src[:])
	copy(b[16:], dst[:])
	binary.BigEndian.PutUint16(b[10:], checksum(b[:ipHeader]))
	binary.BigEndian.PutUint16(b[ipHeader:], p.src.Port())
	binary.BigEndian.PutUint16(b[ipHeader+2:], p.dst.Port())
	if p.proto == frontend.TCP {
		b[ipHeader+12], b[ipHeader+13] = tcpHeader/4<<4, p.flags
	} else {
		binary.BigEndian.PutUint16(b[ipHeader+4:], udpHeader+8)
	}
	binary.BigEndian.PutUint64(b[size-8:], p.id)
	return b
}

// decodePacket is the reverse of encode.
func decodePacket(b []byte) (packet, error) {
	if len(b) < ipHeader+udpHeader+8 || b[0] != 0x45 || checksum(b[:ipHeader]) != 0 {
		return packet{}, fmt.Errorf("not a packet of this test: % x", b)
	}
	addr := func(at, port int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[at:])), binary.BigEndian.Uint16(b[ipHeader+port:]))
	}
	p := packet{src: addr(12, 0), dst: addr(16, 2), proto: b[9], id: binary.BigEndian.Uint64(b[len(b)-8:])}
	if p.proto == frontend.TCP {
		p.flags = b[ipHeader+13]
	}
	return p, nil
}

// checksum is that of RFC 1071; over a header with its checksum it is 0.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func TestCaptureFiles(t *testing.T) {
	sent := []packet{
		{id: 1, src: netip.MustParseAddrPort("198.51.100.1:40000"), dst: netip.MustParseAddrPort("10.96.0.1:80"), proto: frontend.TCP, flags: syn},
		{id: 1 << 40, src: netip.MustParseAddrPort("10.1.0.1:53"), dst: netip.MustParseAddrPort("198.51.100.1:40000"), proto: frontend.UDP},
	}
	file := encodeCapture(sent)
	for cut := captureHeader; cut <= len(file); cut++ {
		got, read, err := decodeCapture(file[captureHeader:cut])
		if err != nil || read > cut-captureHeader {
			t.Fatalf("%d bytes: %d read, %v", cut, read, err)
		}
		check(t, "packets", fmt.Sprint(sent[:len(got)]), fmt.Sprint(got))
	}
	if !bytes.Equal(file, encodeCapture(sent)) {
		t.Error("a capture is written in two ways")
	}
}
