package contract

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// The load of BenchmarkClashes: a client closes connections through a service with two endpoints,
// then connects to one of them from as many ports for each alignment. Linux takes every second port
// of 32768 to 60999, each destination from a start of its own.
const (
	clashSeconds, closesPerSecond = 20, 200
	directConnections, alignments = 300, 24
	firstPort, portsOfLinux       = 32768, 14116
	halfClosed                    = 50
)

// remedy is something against clashes.
type remedy struct {
	name string
	// transitory is the timeout of closed TCP sessions, freeEvery the seconds between deletions
	// of expired ones; 0 = never.
	transitory uint32
	freeEvery  int
	// masquerade replaces the source of every client, clashes that of those that clash.
	masquerade, clashes bool
	cnat                bool
}

// BenchmarkClashes prints how many connections past a service fail with each remedy, for each
// alignment of ports: at once, and 15 s later with another VPP, because attempts have effects. The
// remedies that free sessions have their price printed, and that of a short timeout: how many
// half-closed connections ended that were silent meanwhile.
func BenchmarkClashes(b *testing.B) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		b.Skip(why)
	}
	for _, r := range []remedy{
		{name: "none", transitory: 240},
		{name: "short timeout", transitory: 10},
		{name: "short timeout, freed every 5 s", transitory: 10, freeEvery: 5},
		{name: "short timeout, freed every second", transitory: 10, freeEvery: 1},
		{name: "every client masqueraded", transitory: 240, masquerade: true},
		{name: "clashes masqueraded", transitory: 240, clashes: true},
		{name: "CNAT", cnat: true},
	} {
		for _, later := range []int{0, 15} {
			b.Run(fmt.Sprintf("%s, %d s later", r.name, later), func(b *testing.B) {
				for b.Loop() {
					newCrossing(b, newRig(b, real{realvpp.Start(b, binary, plugins)}), r).measure(later)
				}
			})
		}
	}
}

// crossing is a VPP with clients, and the backends of a service.
type crossing struct {
	*rig
	testing.TB
	remedy
	traffic           traffic
	clients, backends interface_types.InterfaceIndex
	id                uint64
	vip, direct       netip.AddrPort
	calls             int
	spent             time.Duration
}

func newCrossing(b testing.TB, v *rig, r remedy) *crossing {
	c := &crossing{
		rig: v, TB: b, remedy: r, traffic: v.Traffic(b, v), vip: netip.MustParseAddrPort("10.96.0.1:80"), direct: netip.MustParseAddrPort("10.1.0.1:8080"),
	}
	c.clients, c.backends = c.traffic.port(b, false), c.traffic.port(b, false)
	for prefix, index := range map[string]interface_types.InterfaceIndex{"198.18.0.0/15": c.clients, "10.1.0.0/16": c.backends} {
		v.expect(b, ok, up(index))
		v.expect(b, ok, address(b, index, fmt.Sprintf("172.16.0.%d/32", index)))
		v.expect(b, ok, route(b, prefix, via(index, [4]byte{})))
	}
	if r.cnat {
		c.serveByCNAT()
		return c
	}
	row := nat44.Row{Key: key(b, c.vip.String()+"/TCP"), Flags: nat44.Out2InOnly | nat44.SelfTwiceNAT, Pads: true}
	if r.masquerade {
		row.Flags = nat44.Out2InOnly | nat44.TwiceNAT
	}
	for _, addr := range []string{"10.1.0.1", "10.1.0.2"} {
		row.Locals = append(row.Locals, nat44.Local{Addr: netip.MustParseAddr(addr), Port: 8080, Weight: nat44.Weight(2)})
	}
	row.Tag = nat44.Tag{Hash: nat44.ServiceHash("default/web")}.String()
	v.settle(b, &nat44.Want{
		Rows: map[rule.Key]nat44.Row{row.Key: row}, Interfaces: map[uint32]bool{uint32(c.clients): true, uint32(c.backends): true},
		Globals: nat44.Globals{
			TwiceNAT: netip.MustParseAddr("10.255.255.254"), MasqueradeClashes: r.clashes, SessionLimit: 1 << 16,
			Timeouts: nat44.Timeouts{TCPTransitory: r.transitory},
		},
	})
	return c
}

// serveByCNAT is the same service with CNAT.
func (c *crossing) serveByCNAT() {
	says := c.version(c.TB).cnat
	c.expect(c.TB, ok, &cnat.CnatSetSnatAddresses{SwIfIndex: none, SnatIP4: [4]byte{10, 255, 255, 254}})
	c.expect(c.TB, ok, says.policy(cnat.CNAT_POLICY_K8S))
	for _, index := range []interface_types.InterfaceIndex{c.clients, c.backends} {
		for _, node := range says.nodes {
			if node[0][2] == '4' {
				c.expect(c.TB, ok, &feature.FeatureEnableDisable{SwIfIndex: index, Enable: true, ArcName: node[0], FeatureName: node[1]})
			}
		}
		c.expect(c.TB, ok, &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: index, IsAdd: 1, Table: cnat.CNAT_POLICY_POD})
	}
	msg := translation(c.vip.Addr().String(), "10.1.0.1", "10.1.0.2")
	msg.Translation.Vip.Port = c.vip.Port()
	for i := range msg.Translation.Paths {
		msg.Translation.Paths[i].DstEp.Port = c.direct.Port()
	}
	update(c.TB, c.rig, msg)
}

// Flags of TCP beside syn and ack.
const fin = 0x01

// connect passes packets with the flags over each connection, alternately from the client and from
// what it reached, and returns the far ends, as they see the client. A connection of which a packet
// gets lost, or comes from elsewhere, has none afterwards.
func (c *crossing) connect(from []netip.AddrPort, to netip.AddrPort, flags ...uint8) []packet {
	far := make([]packet, len(from))
	for step, f := range flags {
		requests, back := make([]packet, 0, len(from)), step%2 == 1
		at := map[uint64]int{}
		for i, client := range from {
			c.id++
			p := packet{port: c.clients, id: c.id, src: client, dst: to, proto: rule.TCP, flags: f}
			if back {
				p.port, p.src, p.dst = c.backends, far[i].dst, far[i].src
			}
			if step == 0 || far[i].dst.IsValid() {
				requests, at[p.id] = append(requests, p), i
			}
		}
		arrived := c.traffic.exchange(c.TB, requests)
		for id, i := range at {
			got, found := arrived[id]
			switch {
			case !found, back && (got.src != to || got.dst != from[i]):
				far[i] = packet{}
			case !back:
				far[i] = got
			}
		}
	}
	return far
}

// failed counts the connections of which nothing is left.
func failed(far []packet) (n int) {
	for _, p := range far {
		if !p.dst.IsValid() {
			n++
		}
	}
	return n
}

// portsFrom are n client addresses with ports as Linux takes them, from the given one on.
func portsFrom(client string, start, n int) []netip.AddrPort {
	out := make([]netip.AddrPort, n)
	for i := range out {
		out[i] = netip.AddrPortFrom(netip.MustParseAddr(client), uint16(firstPort+2*((start+i)%portsOfLinux)))
	}
	return out
}

// measure plays the load and prints what became of the connections, some seconds later.
func (c *crossing) measure(later int) {
	half := c.connect(portsFrom("198.18.0.2", 0, halfClosed), c.vip, syn, syn|ack, ack, ack, fin|ack, ack)
	if n := failed(half); n > 0 {
		c.Fatalf("%d of %d connections through the service failed", n, halfClosed)
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for s := range clashSeconds {
		<-second.C
		far := c.connect(portsFrom("198.18.0.1", s*closesPerSecond, closesPerSecond), c.vip, syn, syn|ack, ack, ack, fin|ack, fin|ack, ack)
		if n := failed(far); n > 0 {
			c.Fatalf("%d of %d connections through the service failed", n, closesPerSecond)
		}
		c.free(s)
	}
	for s := range later {
		<-second.C
		c.free(s)
	}
	c.print()
	lost := 0
	for i, p := range half {
		c.id++
		answer := packet{port: c.backends, id: c.id, src: p.dst, dst: p.src, proto: rule.TCP, flags: ack}
		got, found := c.traffic.exchange(c.TB, []packet{answer})[answer.id]
		if want := portsFrom("198.18.0.2", i, 1)[0]; !found || got.src != c.vip || got.dst != want {
			lost++
		}
	}
	c.Logf("%d of %d half-closed connections, silent for %d s, are lost; freeing took %d requests and %s for %d closes",
		lost, halfClosed, clashSeconds+later, c.calls, c.spent.Round(time.Millisecond), clashSeconds*closesPerSecond)
}

// print measures every alignment once.
func (c *crossing) print() {
	counts, sum := make([]int, alignments), 0
	for k := range counts {
		counts[k] = failed(c.connect(portsFrom("198.18.0.1", k*portsOfLinux/alignments, directConnections), c.direct, syn, syn|ack))
		sum += counts[k]
	}
	c.Logf("of %d connections past the service fail %d; by alignment %v", alignments*directConnections, sum, counts)
	c.TB.(*testing.B).ReportMetric(float64(slices.Max(counts)), "most-failed")
}

// free deletes expired sessions when it is time.
func (c *crossing) free(second int) {
	if c.freeEvery == 0 || second%c.freeEvery > 0 {
		return
	}
	begin := time.Now()
	if f := sessions.Free(c.Context(), counting{c.link, &c.calls}, nil, sessions.Slice{Deletions: 10000, Dumps: 100}); f.Err != nil || f.Errors > 0 {
		c.Errorf("%+v", f)
	}
	c.spent += time.Since(begin)
}

// counting counts requests.
type counting struct {
	link.Caller
	calls *int
}

func (c counting) Do(ctx context.Context, msgs []api.Message) ([]link.Result, error) {
	*c.calls += len(msgs)
	return c.Caller.Do(ctx, msgs)
}

func (c counting) Dump(ctx context.Context, msg api.Message, each func(api.Message)) error {
	*c.calls++
	return c.Caller.Dump(ctx, msg, each)
}
