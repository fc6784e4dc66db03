package sessions

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func TestMain(m *testing.M) {
	link.Quiet(slog.New(slog.DiscardHandler)) // GoVPP's loggers write to standard output
	goleak.VerifyTestMain(m)
}

// clock is the time of the data path, moved by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// rig is a simulated VPP with a client pod, two backends and one service of each protocol, a link
// to it and its statistics.
type rig struct {
	testing.TB
	*simulator.VPP
	*clock
	link   *link.Link
	reader *Reader
	ports  uint16
}

var (
	service   = netip.MustParseAddrPort("10.96.0.1:80")
	clientPod = netip.MustParseAddr("10.1.1.2")
)

// newRig enables the plugin with a limit.
func newRig(t testing.TB, limit uint32) *rig {
	t.Helper()
	r := &rig{TB: t, clock: &clock{now: noon}, ports: 1024}
	r.VPP = simulator.New(simulator.Options{Clock: r.Now, OnBoot: topology})
	t.Cleanup(func() { _ = r.Close() })
	dir := t.TempDir()
	if err := r.Listen(filepath.Join(dir, "api.sock")); err != nil {
		t.Fatal(err)
	}
	if err := r.ListenStats(filepath.Join(dir, "stats.sock")); err != nil {
		t.Fatal(err)
	}
	r.reader = NewReader(r.StatsSocket())
	r.connect()
	if limit > 0 {
		r.enable(limit)
	}
	return r
}

func topology(v *simulator.VPP) {
	for i := byte(2); i <= 4; i++ {
		if _, err := v.AddPod(fmt.Sprint("pod", i), netip.AddrFrom4([4]byte{10, 1, 1, i})); err != nil {
			panic(err)
		}
	}
}

// connect runs a link as long as the test.
func (r *rig) connect() {
	r.link = link.New(link.Config{Socket: r.Socket(), BackoffMax: 100 * time.Millisecond}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	up, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.link.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				up <- struct{}{}
			}
		})
	}()
	r.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-up:
	case <-time.After(10 * time.Second):
		r.Fatal("not connected")
	}
}

// enable turns the plugin on and installs the services.
func (r *rig) enable(limit uint32) {
	r.Helper()
	r.exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: limit})
	r.exec(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	twice := [4]byte{10, 1, 1, 254}
	r.exec(&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: twice, LastIPAddress: twice, VrfID: ^uint32(0), IsAdd: true, Flags: nat_types.NAT_IS_TWICE_NAT})
	for name, index := range r.Interfaces() {
		if name != "local0" {
			for _, role := range []nat_types.NatConfigFlags{nat_types.NAT_IS_INSIDE, nat_types.NAT_IS_OUTSIDE} {
				r.exec(&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, Flags: role, SwIfIndex: interface_types.InterfaceIndex(index)})
			}
		}
	}
	for _, proto := range []uint8{simulator.ProtoTCP, simulator.ProtoUDP} {
		row := &nat44_ed.Nat44AddDelLbStaticMapping{
			IsAdd: true, Flags: nat_types.NAT_IS_OUT2IN_ONLY | nat_types.NAT_IS_SELF_TWICE_NAT, Protocol: proto,
			ExternalAddr: service.Addr().As4(), ExternalPort: service.Port(), Tag: "test",
		}
		for i := byte(3); i <= 4; i++ {
			row.Locals = append(row.Locals, nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, i}, Port: 8080, Probability: 7})
		}
		r.exec(row)
	}
}

// exec makes VPP carry out a request.
func (r *rig) exec(req api.Message) {
	r.Helper()
	if _, err := r.Exec(req); err != nil {
		r.Fatal(err)
	}
}

// dial opens a connection to the service and reports whether VPP let it.
func (r *rig) dial(proto uint8) bool {
	r.ports++
	return r.from(proto, clientPod, r.ports)
}

// from is dial with the client's address and port.
func (r *rig) from(proto uint8, client netip.Addr, port uint16) bool {
	verdict := r.Send(simulator.Packet{
		In: "pod" + fmt.Sprint(client.As4()[3]), Src: netip.AddrPortFrom(client, port), Dst: service, Proto: proto,
	})
	return verdict.Action == simulator.Delivered
}

// fill opens so many connections.
func (r *rig) fill(proto uint8, n int) {
	r.Helper()
	for i := range n {
		if !r.dial(proto) {
			r.Fatalf("connection %d of %d was refused", i, n)
		}
	}
}

// keep carries out the decisions until one of them waits, and returns them.
func (r *rig) keep(h History, cfg Config) (did []Decision, after History) {
	r.Helper()
	usage, err := r.reader.Read(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for {
		d, next := Decide(r.Now(), usage, h, cfg)
		h, did = next, append(did, d)
		switch {
		case d.Survey:
			survey, err := Look(r.Context(), r.link)
			h = h.Surveyed(r.Now(), survey, err)
			continue
		case d.Raise > 0:
			h = h.Raised(r.Now(), d.Raise, Raise(r.Context(), r.link, d.Raise))
		case d.Free > 0:
			h = h.Freed(r.Now(), Free(r.Context(), r.link, nil, Slice{d.Free, 8}))
		}
		r.advance(d.Next)
		return did, h
	}
}
