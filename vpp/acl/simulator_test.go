package acl

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect starts a simulated VPP with an uplink and two pods, and a link to it. Both end with the
// test.
func connect(t *testing.T, opts simulator.Options) (*simulator.VPP, *link.Link) {
	t.Helper()
	v := simulator.New(opts)
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := v.Listen(socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	_, err := v.AddInterface("uplink", prefixes("192.168.50.1/24"), true)
	for name, addr := range map[string]string{"client": "10.1.1.2", "backend": "10.1.2.2"} {
		_, failed := v.AddPod(name, netip.MustParseAddr(addr))
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, v.DefaultRoute("uplink", netip.MustParseAddr("192.168.50.254"))); err != nil {
		t.Fatal(err)
	}
	l := link.New(link.Config{Socket: socket}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		done <- l.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				up <- struct{}{}
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-up:
	case <-time.After(20 * time.Second):
		t.Fatal("the link does not come up")
	}
	return v, l
}

// TestInFrontOfNAT: deny rules and rows together do what Kubernetes asks for. VPP drops before it
// translates, each client gets its own answer, and an ACL of another owner decides as before.
func TestInFrontOfNAT(t *testing.T) {
	v, l := connect(t, simulator.Options{})
	const lb, nodePort = "203.0.113.10:80", "192.168.50.1:30080"
	ranged := serving("203.0.113.10", 80, tcp, "192.168.50.2/32", "10.1.0.0/16")
	inside := from(serving("192.168.50.1", 30080, tcp), local)
	for _, f := range []*messages.Frontend{ranged, inside} {
		f.Backends = []*messages.Backend{{Address: "10.1.2.2", Port: 8080, Local: true}}
	}
	plan := Plan(view("default/web", inside, dropping("192.168.50.1", 30080, tcp, remote), ranged), Config{})

	index := v.Interfaces()
	rows := &nat44.Want{Rows: map[rule.Key]nat44.Row{}, Interfaces: map[uint32]bool{}}
	want := &Want{Rules: Merge([]*ServicePlan{plan}, nil), Interfaces: map[uint32]Class{index["uplink"]: Remote}}
	for _, name := range []string{"client", "backend"} {
		want.Interfaces[index[name]] = Local
	}
	for i := range want.Interfaces {
		rows.Interfaces[i] = true
	}
	for _, row := range nat44.Plan(view("default/web", inside, ranged), nat44.Config{Pads: true}).Rows {
		rows.Rows[row.Key] = row
	}
	have, err := nat44.Read(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range nat44.Apply(t.Context(), l, nat44.Diff(have, rows, true)) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	port := uint16(4000)
	expect := func(in, src, dst string, want simulator.Action) {
		t.Helper()
		port++
		got := v.Send(simulator.Packet{
			In: in, Src: netip.AddrPortFrom(netip.MustParseAddr(src), port), Dst: netip.MustParseAddrPort(dst),
			Proto: simulator.ProtoTCP, Flags: simulator.SYN,
		})
		if got.Action != want || want == simulator.Dropped && got.Session != 0 {
			t.Errorf("%s, want %s", got, want)
		}
	}
	settle := func() {
		t.Helper()
		have, err := Read(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range Apply(t.Context(), l, Diff(have, want, true)) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	}
	expect("uplink", "192.168.50.77", lb, simulator.Delivered)
	settle()
	expect("uplink", "192.168.50.2", lb, simulator.Delivered)
	expect("uplink", "192.168.50.77", lb, simulator.Dropped)
	expect("client", "10.1.1.2", lb, simulator.Delivered)
	expect("uplink", "192.168.50.2", nodePort, simulator.Dropped)
	expect("client", "10.1.1.2", nodePort, simulator.Delivered)
	expect("uplink", "192.168.50.77", "10.1.2.2:8080", simulator.Delivered)

	v.ResetCounters()
	settle()
	if n := v.Counters().Mutating(); n != 0 {
		t.Errorf("%d changes where nothing is to be done", n)
	}
	want.Rules = nil
	settle()
	expect("uplink", "192.168.50.77", lb, simulator.Delivered)
}

// TestPluginNotLoaded: the error says so.
func TestPluginNotLoaded(t *testing.T) {
	_, l := connect(t, simulator.Options{WithoutPlugins: []string{"acl"}})
	if _, err := Read(t.Context(), l); !errors.Is(err, link.ErrUnsupported) {
		t.Error(err)
	}
}
