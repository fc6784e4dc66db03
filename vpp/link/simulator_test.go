package link_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/codec"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// simulated starts a simulated VPP with NAT44 enabled after every boot, on a real socket.
func simulated(t testing.TB) *simulator.VPP {
	t.Helper()
	vpp := simulator.New(simulator.Options{OnBoot: func(v *simulator.VPP) {
		if _, err := v.Exec(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}); err != nil {
			t.Error(err)
		}
	}})
	t.Cleanup(func() { _ = vpp.Close() })
	if err := vpp.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	return vpp
}

// connected runs a link to a simulated VPP and waits until it is up.
func connected(t testing.TB, vpp *simulator.VPP, cfg link.Config) (*link.Link, <-chan *messages.LinkState) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Socket = vpp.Socket()
	l := link.New(cfg, log)
	states := make(chan *messages.LinkState, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.Run(ctx, func(s *messages.LinkState) { states <- s })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	next(t, states, true)
	return l, states
}

// next waits for a state that is up, or down.
func next(t testing.TB, states <-chan *messages.LinkState, up bool) *messages.LinkState {
	t.Helper()
	patience := time.After(10 * time.Second)
	for {
		select {
		case s := <-states:
			if s.GetUp() == up {
				return s
			}
		case <-patience:
			t.Fatalf("no state with up = %v", up)
		}
	}
}

// service is the LB mapping of the ith service with n backends.
func service(i, n int) *nat44_ed.Nat44AddDelLbStaticMapping {
	m := &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, Flags: 4 | 2, ExternalAddr: ip_types.IP4Address{10, 96, byte(i >> 8), byte(i)}, ExternalPort: 80, Protocol: 6,
		Tag: "troupe/0123456789abcdef",
	}
	for k := range n {
		m.Locals = append(m.Locals, nat44_ed.Nat44LbAddrPort{Addr: ip_types.IP4Address{10, 1, byte(i), byte(k)}, Port: 8080, Probability: 7})
	}
	return m
}

// services is a batch of mappings.
func services(count, backends int) []api.Message {
	reqs := make([]api.Message, count)
	for i := range reqs {
		reqs[i] = service(i, backends)
	}
	return reqs
}

func TestProgramAndReadBack(t *testing.T) {
	vpp := simulated(t)
	l, _ := connected(t, vpp, link.Config{})
	results, err := l.Do(t.Context(), services(3000, 5))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("service %d: %v", i, r.Err)
		}
	}
	rows := 0
	err = l.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, func(m api.Message) {
		if d := m.(*nat44_ed.Nat44LbStaticMappingDetails); len(d.Locals) == 5 && d.Tag == "troupe/0123456789abcdef" {
			rows++
		}
	})
	if err != nil || rows != 3000 {
		t.Errorf("read %d rows back, error %v", rows, err)
	}
	empty := 0
	if err := l.Dump(t.Context(), &nat44_ed.Nat44EdOutputInterfaceGet{}, func(api.Message) { empty++ }); err != nil || empty != 0 {
		t.Errorf("empty paged dump = %d, %v", empty, err)
	}
}

func TestGuardProtectsVPP(t *testing.T) {
	vpp := simulated(t)
	l, _ := connected(t, vpp, link.Config{})
	before := vpp.Incarnation()
	lethal := service(1, 2)
	lethal.Locals[0].Probability, lethal.Locals[1].Probability = 128, 128
	results, err := l.Do(t.Context(), []api.Message{service(0, 300), lethal, service(2, 2)})
	if err != nil || !errors.Is(results[0].Err, link.ErrRefused) || !errors.Is(results[1].Err, link.ErrRefused) || results[2].Err != nil {
		t.Errorf("Do = %v, %v", results, err)
	}
	if !vpp.Alive() || vpp.Incarnation() != before {
		t.Error("VPP died")
	}
}

func TestLivesOfVPP(t *testing.T) {
	vpp := simulated(t)
	var hints atomic.Int64
	l, states := connected(t, vpp, link.Config{
		ProbeInterval: 20 * time.Millisecond, ReplyTimeout: 300 * time.Millisecond, ConnectTimeout: 300 * time.Millisecond,
		BackoffMax: 50 * time.Millisecond, OnEvent: func() { hints.Add(1) },
	})
	vpp.DisconnectClients()
	next(t, states, false)
	same := next(t, states, true)
	vpp.Crash()
	next(t, states, false)
	if _, err := l.Do(t.Context(), services(1, 2)); !errors.Is(err, link.ErrDown) {
		t.Errorf("Do without VPP = %v", err)
	}
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	restarted := next(t, states, true)
	if restarted.GetBoot() == same.GetBoot() || restarted.GetSession() != same.GetSession()+1 {
		t.Errorf("states %v, %v", same, restarted)
	}
	vpp.Inject(simulator.Fault{Message: "nat44_add_del_lb_static_mapping", Skip: 10, Times: 1, CloseMidFrame: true})
	results, err := l.Do(t.Context(), services(1000, 2))
	// Replies that were on their way when the next write failed are lost too, so the last ones
	// before the fault may be unknown.
	if err != nil || results[9].Err != nil && !errors.Is(results[9].Err, link.ErrUnknown) || !errors.Is(results[10].Err, link.ErrUnknown) || !errors.Is(results[999].Err, link.ErrNotSent) {
		t.Errorf("Do = %v, %v, %v, %v", results[9].Err, results[10].Err, results[999].Err, err)
	}
	next(t, states, false)
	next(t, states, true)
	vpp.Hang()
	next(t, states, false)
	vpp.Resume()
	next(t, states, true)
	seen := hints.Load()
	if _, err := vpp.AddInterface("host-x", []netip.Prefix{netip.MustParsePrefix("10.5.0.1/24")}, true); err != nil {
		t.Fatal(err)
	}
	for patience := time.Now().Add(10 * time.Second); hints.Load() == seen; time.Sleep(time.Millisecond) {
		if time.Now().After(patience) {
			t.Fatal("no hint after a new interface")
		}
	}
}

// BenchmarkProgram programs 10,000 rows with 5 backends through a Link; BenchmarkBare does the same
// with GoVPP's client and a window only, which is the bar.
func BenchmarkProgram(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		vpp := simulated(b)
		l, _ := connected(b, vpp, link.Config{})
		reqs := services(10000, 5)
		b.StartTimer()
		results, err := l.Do(context.Background(), reqs)
		if err != nil || results[9999].Err != nil {
			b.Fatal(err, results[9999].Err)
		}
		b.StopTimer()
		_ = vpp.Close()
		b.StartTimer()
	}
}

// BenchmarkBare is the minimal pipelined loop over the same transport.
func BenchmarkBare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		vpp := simulated(b)
		client := socketclient.NewVppClient(vpp.Socket())
		window := make(chan struct{}, 16)
		client.SetMsgCallback(func(uint16, []byte) { <-window })
		if err := client.Connect(); err != nil {
			b.Fatal(err)
		}
		reqs := services(10000, 5)
		b.StartTimer()
		for i, req := range reqs {
			id, err := client.GetMsgID(req.GetMessageName(), req.GetCrcString())
			if err != nil {
				b.Fatal(err)
			}
			data, err := codec.EncodeMsg(req, id)
			if err != nil {
				b.Fatal(err)
			}
			window <- struct{}{}
			if err := client.SendMsg(uint32(i), data); err != nil {
				b.Fatal(err)
			}
		}
		for range cap(window) {
			window <- struct{}{}
		}
		b.StopTimer()
		_ = client.Disconnect()
		_ = vpp.Close()
		b.StartTimer()
	}
}

// BenchmarkDump reads 10,000 rows with 5 backends back.
func BenchmarkDump(b *testing.B) {
	vpp := simulated(b)
	l, _ := connected(b, vpp, link.Config{})
	if _, err := l.Do(context.Background(), services(10000, 5)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := l.Dump(context.Background(), &nat44_ed.Nat44LbStaticMappingDump{}, func(api.Message) { n++ }); err != nil || n != 10000 {
			b.Fatal(n, err)
		}
	}
}
