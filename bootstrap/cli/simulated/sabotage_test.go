package simulated

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// running starts the agent of the demo and waits until it is in sync.
func running(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	o := options(t)
	o.blind = true
	services, err := o.cluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := start(o, filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := &stage{Agent: a, services: services, quiet: 100 * time.Millisecond}
	if _, _, err := s.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// exec changes VPP outside the agent.
func exec(t *testing.T, vpp *simulator.VPP, req api.Message) {
	t.Helper()
	replies, err := vpp.Exec(req)
	if err != nil || len(replies) != 1 {
		t.Fatalf("%s: %v, %v", req.GetMessageName(), replies, err)
	}
}

// unroute takes a route of the agent out of VPP.
func unroute(t *testing.T, vpp *simulator.VPP, prefix string) {
	t.Helper()
	sources, err := vpp.Exec(&fib.FibSourceDump{})
	if err != nil {
		t.Fatal(err)
	}
	wire, err := ip_types.ParsePrefix(prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if d, ok := source.(*fib.FibSourceDetails); ok && d.Src.Name == "troupe" {
			exec(t, vpp, &ip.IPRouteAddDelV2{Route: ip.IPRouteV2{Prefix: wire, Src: d.Src.ID}})
			return
		}
	}
	t.Fatalf("%s: the agent has no source of routes", prefix)
}

func remove(t *testing.T, vpp *simulator.VPP, vip string) {
	t.Helper()
	if retval, err := vpp.ForeignRemove(netip.MustParseAddrPort(vip), 6); err != nil || retval != 0 {
		t.Fatalf("remove %s: %d, %v", vip, retval, err)
	}
}

func replace(t *testing.T, vpp *simulator.VPP, row simulator.ForeignRow) {
	t.Helper()
	remove(t, vpp, row.VIP.String())
	row.Proto = 6
	if retval, err := vpp.ForeignAdd(row); err != nil || retval != 0 {
		t.Fatalf("replace %s: %d, %v", row.VIP, retval, err)
	}
}

// backends are the backends of a row, all with the same weight.
func backends(addresses ...string) []simulator.Backend {
	out := make([]simulator.Backend, len(addresses))
	for i, a := range addresses {
		out[i] = simulator.Backend{Addr: netip.MustParseAddrPort(a), Weight: 7}
	}
	return out
}

// sabotage is damage in VPP that the agent does not notice.
type sabotage struct {
	do   func(t *testing.T, vpp *simulator.VPP)
	want []string // parts of the failures in the report
}

// sabotages are one of each kind.
var sabotages = map[string]sabotage{
	"nothing": {func(*testing.T, *simulator.VPP) {}, nil},
	"a row is gone": {
		func(t *testing.T, vpp *simulator.VPP) { remove(t, vpp, "10.96.30.2:80") },
		[]string{"VPP has 22 rows, the agent reports 23", "to 10.96.30.2:80/TCP: want forward, got "},
	},
	"a backend is wrong": {
		func(t *testing.T, vpp *simulator.VPP) {
			replace(t, vpp, simulator.ForeignRow{VIP: netip.MustParseAddrPort("10.96.30.2:80"), SelfTwiceNAT: true, Backends: backends("10.1.1.8:8080", "10.1.2.5:8080", "10.1.3.66:8080")})
		},
		[]string{"to 10.96.30.2:80/TCP: want forward, got forward: arrived at 10.1.3.66:8080, which is no endpoint of it"},
	},
	"a port is wrong": {
		func(t *testing.T, vpp *simulator.VPP) {
			replace(t, vpp, simulator.ForeignRow{VIP: netip.MustParseAddrPort("10.96.30.4:8081"), SelfTwiceNAT: true, Backends: backends("10.1.1.10:18081", "10.1.2.7:8081")})
		},
		[]string{"to 10.96.30.4:8081/TCP: want forward, got forward: arrived at 10.1.2.7:8081, which is no endpoint of it"},
	},
	"a backend is missing": {
		func(t *testing.T, vpp *simulator.VPP) {
			replace(t, vpp, simulator.ForeignRow{VIP: netip.MustParseAddrPort("10.96.30.2:80"), SelfTwiceNAT: true, Backends: backends("10.1.1.8:8080", "10.1.2.5:8080")})
		},
		[]string{"to 10.96.30.2:80/TCP: want forward, got forward: only 2 of 3 backends were used"},
	},
	"affinity is missing": {
		func(t *testing.T, vpp *simulator.VPP) {
			replace(t, vpp, simulator.ForeignRow{VIP: netip.MustParseAddrPort("10.96.30.1:80"), SelfTwiceNAT: true, Backends: backends("10.1.1.7:8080", "10.1.3.5:8080")})
		},
		[]string{"to 10.96.30.1:80/TCP: want forward, got forward: affinity, but 2 backends were used"},
	},
	"a remote backend behind a Local policy": {
		func(t *testing.T, vpp *simulator.VPP) {
			replace(t, vpp, simulator.ForeignRow{VIP: netip.MustParseAddrPort("203.0.113.10:80"), SelfTwiceNAT: true, Backends: backends("10.1.1.4:8080", "10.1.1.5:8080", "10.1.2.3:8080")})
		},
		[]string{"from outside 192.0.2.77 to 203.0.113.10:80/TCP: want forward, got forward: arrived at 10.1.2.3:8080, which is no endpoint of it"},
	},
	"the client's address is lost": {
		func(t *testing.T, vpp *simulator.VPP) {
			replace(t, vpp, simulator.ForeignRow{VIP: netip.MustParseAddrPort("203.0.113.10:80"), TwiceNAT: true, Backends: backends("10.1.1.4:8080", "10.1.1.5:8080")})
		},
		[]string{"from outside 192.0.2.77 to 203.0.113.10:80/TCP: want forward, got forward: the client's address was lost"},
	},
	"a load balancer has only one of its local backends": {
		func(t *testing.T, vpp *simulator.VPP) {
			replace(t, vpp, simulator.ForeignRow{VIP: netip.MustParseAddrPort("203.0.113.10:80"), SelfTwiceNAT: true, Backends: backends("10.1.1.4:8080", "10.1.1.4:8080")})
		},
		[]string{"from pod 10.1.1.7 to 203.0.113.10:80/TCP: want forward, got forward: only 1 of 3", "from outside 192.0.2.77 to 203.0.113.10:80/TCP: want forward, got forward: only 1 of 2"},
	},
	"a service without endpoints is not refused": {
		func(t *testing.T, vpp *simulator.VPP) {
			unroute(t, vpp, "10.96.0.0/16")
			unroute(t, vpp, "10.96.40.1/32")
		},
		[]string{"from pod 10.1.1.7 to 10.96.40.1:80/TCP: want reject, got none"},
	},
	"the hairpin address is gone": {
		func(t *testing.T, vpp *simulator.VPP) {
			exec(t, vpp, &nat44_ed.Nat44AddDelAddressRange{
				FirstIPAddress: ip_types.IP4Address{10, 1, 1, 254}, LastIPAddress: ip_types.IP4Address{10, 1, 1, 254}, VrfID: ^uint32(0),
				Flags: nat_types.NAT_IS_TWICE_NAT,
			})
		},
		[]string{"from pod 10.1.1.7 to 10.96.30.1:80/TCP: want forward, got drop"},
	},
	"the uplink has no role": {
		func(t *testing.T, vpp *simulator.VPP) {
			for _, flags := range []nat_types.NatConfigFlags{nat_types.NAT_IS_INSIDE, nat_types.NAT_IS_OUTSIDE} {
				exec(t, vpp, &nat44_ed.Nat44InterfaceAddDelFeature{
					SwIfIndex: interface_types.InterfaceIndex(vpp.Interfaces()[agent.UplinkInterface]), Flags: flags,
				})
			}
		},
		[]string{"from outside 192.0.2.77 to 192.168.16.1:30443/TCP: want forward, got none"},
	},
	"a pod cannot be reached": {
		func(t *testing.T, vpp *simulator.VPP) {
			if err := vpp.AddRoute(simulator.Route{Prefix: netip.MustParsePrefix("10.1.1.3/32"), Action: simulator.RouteDrop}); err != nil {
				t.Fatal(err)
			}
		},
		[]string{"to 10.96.0.30:9090/TCP: want forward, got drop"},
	},
}

// TestProofCanFail tests the checks of the demo: the report shows any damage in VPP, and its place.
func TestProofCanFail(t *testing.T) {
	for name, tt := range sabotages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := running(t)
			tt.do(t, a.Simulator())
			report, _, err := a.look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			report.judge()
			if report.OK != (len(tt.want) == 0) {
				t.Errorf("OK is %t: %q", report.OK, report.Failures)
			}
			all := strings.Join(report.Failures, "\n")
			for _, want := range tt.want {
				if !strings.Contains(all, want) {
					t.Errorf("no failure has %q:\n%s", want, all)
				}
			}
		})
	}
}

// TestDrillCanFail: a drill fails if the fault costs writes, also if the agent is in sync
// afterwards.
func TestDrillCanFail(t *testing.T) {
	a := running(t)
	good, err := a.kill(t.Context(), "renderer", address.Renderer("nat44"))
	if err != nil || !good.OK || good.VPPWrites != 0 || good.VPPReads != 1 {
		t.Errorf("nothing wrong: %+v, %v", good, err)
	}
	remove(t, a.Simulator(), "10.96.30.2:80") // the new renderer will find it missing
	bad, err := a.kill(t.Context(), "renderer", address.Renderer("nat44"))
	if err != nil || bad.OK || bad.VPPWrites == 0 {
		t.Errorf("a row had to be written: %+v, %v", bad, err)
	}
	report := &Report{Drills: []Drill{good, bad}}
	if report.judge(); report.OK || len(report.Failures) != 1 || !strings.Contains(report.Failures[0], "1 reads") {
		t.Errorf("failures %q", report.Failures)
	}
	if _, err := a.kill(t.Context(), "unknown", "agent/unknown"); err == nil || !strings.HasPrefix(err.Error(), "unknown: ") {
		t.Errorf("an actor that does not exist: %v", err)
	}
}
