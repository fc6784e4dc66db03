package interfaces_test

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// connected returns a link to a simulated VPP with the topology of a node.
func connected(t testing.TB) (*simulator.VPP, *link.Link) {
	t.Helper()
	vpp := simulator.New(simulator.Options{})
	t.Cleanup(func() { _ = vpp.Close() })
	if err := vpp.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	l := link.New(link.Config{Socket: vpp.Socket()}, log)
	ctx, cancel := context.WithCancel(context.Background())
	up, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				up <- struct{}{}
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-up:
	case <-time.After(10 * time.Second):
		t.Fatal("not connected")
	}
	return vpp, l
}

// must fails the test on an error of the topology.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDiscoverSimulatedVPP(t *testing.T) {
	vpp, l := connected(t)
	uplink, err := vpp.AddInterface("host-eth0", []netip.Prefix{netip.MustParsePrefix("192.168.50.1/24"), netip.MustParsePrefix("fd00::1/64")}, true)
	must(t, err)
	must(t, vpp.DefaultRoute("host-eth0", netip.MustParseAddr("192.168.50.254")))
	_, err = vpp.AddInterfaceSpec(simulator.InterfaceSpec{
		Name: "loop0", Kind: simulator.KindLoopback, Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/32")},
	})
	must(t, err)
	web, err := vpp.AddPod("pod-web", netip.MustParseAddr("10.1.1.2"))
	must(t, err)
	db, err := vpp.AddPod("pod-db", netip.MustParseAddr("10.1.1.3"))
	must(t, err)
	must(t, vpp.AddRoute(simulator.Route{Prefix: netip.MustParsePrefix("10.1.9.9/32"), NextHop: netip.MustParseAddr("10.1.1.3")}))
	in := interfaces.Input{
		Boot: "boot",
		Pods: []*messages.Pod{
			{Namespace: "default", Name: "web", Addresses: []string{"10.1.1.2"}},
			{Namespace: "default", Name: "db", Addresses: []string{"10.1.1.3"}},
			{Namespace: "default", Name: "second", Addresses: []string{"10.1.9.9"}},
			{Namespace: "default", Name: "pending", Addresses: []string{"10.1.1.99"}},
		},
		LocalEndpoints: []string{"10.1.9.9", "10.1.1.99"},
	}
	set, err := new(interfaces.Reader).Discover(t.Context(), l, in)
	must(t, err)
	if set.GetUplink() != uplink || !cmp.Equal(set.GetNodeAddresses(), []string{"192.168.50.1/24", "fd00::1/64"}) || set.GetBoot() != "boot" {
		t.Errorf("uplink %d with %v, want %d", set.GetUplink(), set.GetNodeAddresses(), uplink)
	}
	type role struct {
		Kind              messages.InterfaceKind
		Frontend, Backend bool
		Pods              []string
	}
	got := map[string]role{}
	for _, i := range set.GetInterfaces() {
		got[i.GetName()] = role{i.GetKind(), i.GetFrontend(), i.GetBackend(), i.GetPods()}
	}
	want := map[string]role{
		"local0":    {Kind: messages.InterfaceKind_INTERFACE_INTERNAL},
		"loop0":     {Kind: messages.InterfaceKind_INTERFACE_INTERNAL},
		"host-eth0": {Kind: messages.InterfaceKind_INTERFACE_UPLINK, Frontend: true, Backend: true},
		"pod-web":   {Kind: messages.InterfaceKind_INTERFACE_POD, Frontend: true, Pods: []string{"default/web"}},
		"pod-db":    {Kind: messages.InterfaceKind_INTERFACE_POD, Frontend: true, Backend: true, Pods: []string{"default/db", "default/second"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roles (web is %d, db %d): %s", web, db, diff)
	}
	again, err := new(interfaces.Reader).Discover(t.Context(), l, in)
	must(t, err)
	if diff := cmp.Diff(set, again, protocmp.Transform()); diff != "" {
		t.Errorf("nothing changed, and yet: %s", diff)
	}
	if n := vpp.Counters().Mutating(); n != 0 {
		t.Errorf("discovery sent %d messages that change VPP", n)
	}
}

func TestDiscoverEmptyVPP(t *testing.T) {
	_, l := connected(t)
	set, err := new(interfaces.Reader).Discover(t.Context(), l, interfaces.Input{LocalEndpoints: []string{"10.0.0.1"}})
	must(t, err)
	if set.Uplink != nil || len(set.GetInterfaces()) != 1 {
		t.Errorf("set = %v", set)
	}
}

// BenchmarkDiscover reads a node with 200 pods.
func BenchmarkDiscover(b *testing.B) {
	vpp, l := connected(b)
	var in interfaces.Input
	for i := range 200 {
		a := netip.AddrFrom4([4]byte{10, 1, 1, byte(i + 1)})
		_, err := vpp.AddPod("pod-"+a.String(), a)
		must(b, err)
		in.Pods = append(in.Pods, &messages.Pod{Namespace: "n", Name: a.String(), Addresses: []string{a.String()}})
		in.LocalEndpoints = append(in.LocalEndpoints, a.String())
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := new(interfaces.Reader).Discover(context.Background(), l, in); err != nil {
			b.Fatal(err)
		}
	}
}
