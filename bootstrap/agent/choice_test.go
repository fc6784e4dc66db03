package agent

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// perPod makes a table for each pod in a VPP: the pod's interface has the pod's own address there.
func perPod(t *testing.T, vpp *simulator.VPP) {
	t.Helper()
	pod := netip.MustParsePrefix("10.1.1.2/32")
	_, err := vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: "tap1", Addresses: []netip.Prefix{pod}, Up: true, TableID: 11})
	if err == nil {
		err = vpp.AddRoute(simulator.Route{Prefix: pod, NextHop: pod.Addr(), Interface: "tap1"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// onePod connects a pod of this node to a VPP, in table 0.
func onePod(t *testing.T, vpp *simulator.VPP) {
	t.Helper()
	if _, err := vpp.AddPod("pod2", netip.MustParseAddr("10.1.1.2")); err != nil {
		t.Fatal(err)
	}
}

// TestRendererIsChosen: with --renderer auto CNAT serves IPv4 where VPP has a table for each pod,
// and NAT44 elsewhere. The choice waits for VPP, is made before anything is written, and is said.
// It stays when VPP comes back with another layout.
func TestRendererIsChosen(t *testing.T) {
	for name, tt := range map[string]struct {
		setup     func(*testing.T, *simulator.VPP)
		late      bool // VPP starts after the agent
		renderers []string
		why       string
	}{
		"pods in one table":               {onePod, false, []string{"nat44", "cnat", "routes"}, "IPv4 by nat44: VPP itself has the address of no pod"},
		"VPP comes late":                  {onePod, true, []string{"nat44", "cnat", "routes"}, "IPv4 by nat44: "},
		"a table for each pod":            {perPod, false, []string{"cnat", "routes"}, "IPv4 by cnat: the table of tap1 has 10.1.1.2"},
		"a table for each pod comes late": {perPod, true, []string{"cnat", "routes"}, "IPv4 by cnat: "},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logged{}
			cfg := withVPP(t, shortDir(t))
			cfg.Renderer, cfg.SNAT.Enabled = config.RendererAuto, true
			begin := func() {
				vpp := simulator.New(simulator.Options{})
				connectUplink(t, vpp)
				tt.setup(t, vpp)
				if err := vpp.Listen(cfg.VPP.APISocket); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = vpp.Close() })
			}
			if !tt.late {
				begin()
			}
			a, err := Start(cfg, slog.New(slog.NewTextHandler(log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stop(t, a) })
			if tt.late {
				if text := a.choiceText(); !strings.Contains(text, "first connection") {
					t.Errorf("without VPP: %s", text)
				}
				begin()
			}
			ready(t, a)
			parts := a.backend.Readiness().Parts
			said := slices.IndexFunc(parts, func(p api.Part) bool { return p.Name == "renderer" && strings.HasPrefix(p.Reason, tt.why) })
			nodes, err := a.backend.Nodes(t.Context())
			if err != nil || said < 0 || !strings.HasPrefix(nodes.Renderer, tt.why) {
				t.Errorf("parts %v, nodes %v, %v", parts, nodes, err)
			}
			if got := a.Renderers(); !slices.Equal(got, tt.renderers) {
				t.Errorf("renderers %v", got)
			}
			if n := strings.Count(log.String(), "reason=RendererChosen"); n != 1 {
				t.Errorf("%d Events", n)
			}
			if warned := strings.Contains(parts[said].Reason, "snat.enabled has no effect"); warned != (len(tt.renderers) == 2) {
				t.Errorf("reason %q", parts[said].Reason)
			}
		})
	}
}
