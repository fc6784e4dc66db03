package routes_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connected returns a link to a simulated VPP with a pod and an uplink.
func connected(t testing.TB, opts simulator.Options) (*simulator.VPP, *link.Link) {
	t.Helper()
	vpp := simulator.New(opts)
	t.Cleanup(func() { _ = vpp.Close() })
	if err := vpp.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	_, err := vpp.AddInterface("up", []netip.Prefix{netip.MustParsePrefix("192.168.50.1/24")}, true)
	if err == nil {
		err = vpp.DefaultRoute("up", netip.MustParseAddr("192.168.50.254"))
	}
	if err == nil {
		_, err = vpp.AddPod("pod", netip.MustParseAddr("10.1.1.2"))
	}
	if err != nil {
		t.Fatal(err)
	}
	l := link.New(link.Config{Socket: vpp.Socket()}, slog.New(slog.NewTextHandler(io.Discard, nil)))
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

// settle makes VPP hold what is wanted.
func settle(t testing.TB, l link.Caller, want routes.Want) {
	t.Helper()
	have, err := routes.Read(t.Context(), l, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes.Apply(t.Context(), l, routes.Diff(have, want, true)) {
		if r.Err != nil || r.Unknown {
			t.Errorf("%+v", r)
		}
	}
}

// wanted resolves the claims of every service, on a node whose address is 192.168.50.1.
func wanted(claims map[string]map[netip.Prefix]routes.Claim) routes.Want {
	byPrefix, want := map[netip.Prefix][]routes.Claim{}, routes.Want{}
	for _, own := range claims {
		for p, c := range own {
			byPrefix[p] = append(byPrefix[p], c)
		}
	}
	ground := rule.Ground{Hosts: map[netip.Addr]bool{netip.MustParseAddr("192.168.50.1"): true}}
	for p, all := range byPrefix {
		if route, found := routes.Resolve(p, all, ground); found {
			want[p] = route
		}
	}
	return want
}

// TestPacketsAreRefused goes from views of services to the fates of packets.
func TestPacketsAreRefused(t *testing.T) {
	vpp, l := connected(t, simulator.Options{})
	claims := map[string]map[netip.Prefix]routes.Claim{"": routes.Networks([]netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")})}
	kinds := map[messages.Scope]messages.FrontendKind{
		messages.Scope_SCOPE_CLUSTER: messages.FrontendKind_KIND_CLUSTER_IP, messages.Scope_SCOPE_EXTERNAL: messages.FrontendKind_KIND_LOAD_BALANCER_IP,
	}
	refuse := func(key string, scope messages.Scope, action messages.Action, addresses ...string) {
		view := &messages.ServiceView{Key: key}
		for _, a := range addresses {
			view.Frontends = append(view.Frontends, &messages.Frontend{
				Address: a, Port: 80, Protocol: messages.Protocol_TCP, Scope: scope, Action: action, Kind: kinds[scope],
			})
		}
		claims[key] = map[netip.Prefix]routes.Claim{}
		for _, c := range routes.Plan(view, routes.Config{}).Claims {
			claims[key][c.Prefix()] = c
		}
	}
	refuse("default/empty", messages.Scope_SCOPE_CLUSTER, messages.Action_ACTION_REJECT, "10.96.0.1")
	refuse("default/remote", messages.Scope_SCOPE_CLUSTER, messages.Action_ACTION_DROP, "10.96.0.2")
	refuse("default/lb", messages.Scope_SCOPE_EXTERNAL, messages.Action_ACTION_REJECT, "203.0.113.7", "192.168.50.1")
	refuse("default/elsewhere", messages.Scope_SCOPE_EXTERNAL, messages.Action_ACTION_DROP, "203.0.113.8")
	settle(t, l, wanted(claims))

	expect := func(want map[string]simulator.Action) {
		t.Helper()
		for dst, action := range want {
			got := vpp.Send(simulator.Packet{
				In: "pod", Src: netip.MustParseAddrPort("10.1.1.2:40000"), Dst: netip.MustParseAddrPort(dst), Proto: simulator.ProtoTCP, Flags: simulator.SYN,
			})
			if got.Action != action {
				t.Errorf("a packet to %s: %s, want %s", dst, got, action)
			}
		}
	}
	expect(map[string]simulator.Action{
		"10.96.0.1:80": simulator.Rejected, "10.96.0.1:81": simulator.Rejected, "10.96.7.7:80": simulator.Rejected, "10.96.0.2:80": simulator.Dropped,
		"203.0.113.7:80": simulator.Rejected, "203.0.113.8:80": simulator.Delivered, "203.0.113.9:80": simulator.Delivered,
		"192.168.50.1:80": simulator.Local, "192.168.50.254:80": simulator.Delivered,
	})
	delete(claims, "default/lb")
	delete(claims, "")
	settle(t, l, wanted(claims))
	expect(map[string]simulator.Action{
		"10.96.0.1:80": simulator.Rejected, "10.96.7.7:80": simulator.Delivered, "203.0.113.7:80": simulator.Delivered,
	})
}

// TestOlderVPP: without the messages nothing is sent.
func TestOlderVPP(t *testing.T) {
	vpp, l := connected(t, simulator.Options{WithoutPlugins: []string{"fib"}})
	counters := vpp.Counters()
	before := counters.Mutating()
	if _, err := routes.Read(t.Context(), l, nil, nil); !errors.Is(err, routes.ErrUnsupported) || !errors.Is(err, link.ErrUnsupported) {
		t.Errorf("read: %v", err)
	}
	want := routes.Want{netip.MustParsePrefix("10.96.0.0/16"): {Kind: routes.Reject}}
	for _, r := range routes.Apply(t.Context(), l, routes.Diff(routes.NewState(), want, true)) {
		if !errors.Is(r.Err, routes.ErrUnsupported) || r.Unknown || r.Messages != 0 {
			t.Errorf("apply: %+v", r)
		}
	}
	counters = vpp.Counters()
	if after := counters.Mutating(); after != before {
		t.Errorf("%d messages changed something", after-before)
	}
}
