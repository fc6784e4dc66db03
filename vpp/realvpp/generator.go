package realvpp

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/vlib"
)

// Generator sends packets through a real VPP by its own packet generator, which every VPP has: no
// privileges, no interfaces of the host. It replays capture files and writes what leaves its
// interfaces to others.
type Generator struct {
	raw     *Raw
	dir     string
	workers int
	streams int
	ports   []*capture
}

// capture is what left an interface of the generator.
type capture struct {
	index uint32
	id    int
	path  string
	read  int64 // bytes of the file that were read
}

// NewGenerator returns the generator of a VPP, valid until that ends.
func NewGenerator(t testing.TB, p *Process) *Generator {
	return &Generator{raw: NewRaw(t, p.Socket()), dir: p.dir, workers: p.workers}
}

// Port creates an interface for packets of IPv4, or of IPv6, not yet up, and returns its index.
// Where VPP has no packet generator the test is skipped.
func (g *Generator) Port(t testing.TB, ip6 bool) uint32 {
	t.Helper()
	mode := pg.PG_API_MODE_IP4
	if ip6 {
		mode = pg.PG_API_MODE_IP6
	}
	c := &capture{id: len(g.ports)}
	c.path = filepath.Join(g.dir, fmt.Sprintf("out%d.pcap", c.id))
	_ = os.Remove(c.path) // of the VPP before a restart: a capture does not replace a file
	var reply pg.PgCreateInterfaceV2Reply
	// Version 2 of the message is in every VPP from 24.06 on.
	g.raw.Ask(t, &pg.PgCreateInterfaceV2{InterfaceID: interface_types.InterfaceIndex(c.id), Mode: mode}, &reply)
	if reply.Retval != 0 {
		t.Skipf("no packets are sent through this VPP, it makes no interface of its packet generator: %d", reply.Retval)
	}
	c.index = uint32(reply.SwIfIndex)
	// Not by pg_capture: VPP 25.10 frees the name of the file before it opens it.
	g.Command(t, fmt.Sprintf("packet-generator capture pg%d pcap %s", c.id, c.path))
	g.ports = append(g.ports, c)
	return c.index
}

// Exchange sends packets into VPP and returns the packets that left it through any of the
// interfaces, by their ids, when all are through. ICMP errors of VPP itself are not among them.
func (g *Generator) Exchange(t testing.TB, packets []Packet) map[uint64]Packet {
	t.Helper()
	for _, c := range g.ports {
		var sent []Packet
		for _, p := range packets {
			if p.Port == c.index {
				sent = append(sent, p)
			}
		}
		if len(sent) > 0 {
			g.replay(t, c, sent)
		}
	}
	out := map[uint64]Packet{}
	g.collect(t, out)
	// A worker hands packets to another one, which may hand them on. VPP waits for all of its
	// workers before each of these commands, so that each has gone through its loop as often.
	for round := 0; g.workers > 1 && len(out) < len(packets) && round < 2*handoffs; round++ {
		g.Command(t, "show packet-generator")
		g.collect(t, out)
	}
	return out
}

// collect adds the packets that have left since the last time.
func (g *Generator) collect(t testing.TB, out map[uint64]Packet) {
	t.Helper()
	for _, c := range g.ports {
		for _, p := range c.take(t) {
			if p.Proto != icmp4 && p.Proto != icmp6 {
				out[p.ID] = p
			}
		}
	}
}

// replay feeds a stream of packets into an interface, and waits until VPP has worked on all of
// them.
func (g *Generator) replay(t testing.TB, c *capture, packets []Packet) {
	t.Helper()
	g.streams++
	name := fmt.Sprintf("stream%d", g.streams)
	path := filepath.Join(g.dir, name+".pcap")
	if err := os.WriteFile(path, encodeCapture(packets), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(path) }()
	g.Command(t, fmt.Sprintf("packet-generator new name %s source pg%d pcap %s", name, c.id, path))
	g.Command(t, "packet-generator enable-stream "+name)
	done := fmt.Sprintf(" No %d ", len(packets))
	waitFor(t, "VPP to take the packets", func() bool {
		var shown vlib.CliInbandReply
		g.raw.Ask(t, &vlib.CliInband{Cmd: "show packet-generator"}, &shown)
		return strings.Contains(strings.Join(strings.Fields(shown.Reply), " "), name+done)
	})
	g.Command(t, "packet-generator delete "+name)
}

// Protocols of the packets that VPP sends by itself.
const icmp4, icmp6 = 1, 58

// handoffs is how often a packet changes its worker at most.
const handoffs = 3

// Command runs a command of the debug CLI that the link refuses.
func (g *Generator) Command(t testing.TB, text string) {
	t.Helper()
	if retval := g.raw.Retval(t, &vlib.CliInband{Cmd: text}); retval != 0 {
		t.Fatalf("%q returned %d", text, retval)
	}
}

// take returns the packets that left since the last time.
func (c *capture) take(t testing.TB) []Packet {
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
		packets[i].Port = c.index
	}
	return packets
}
