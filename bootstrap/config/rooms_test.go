package config

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

func TestServing(t *testing.T) {
	cfg, err := Services{ClusterCIDRs: []string{"10.1.2.3/16"}, ServiceCIDRs: []string{"fd00::/112"}, NodePortAddresses: []string{"all"}, MasqueradeAll: true}.Serving()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.ClusterCIDRs[0] != netip.MustParsePrefix("10.1.0.0/16") || cfg.ServiceCIDRs[0] != netip.MustParsePrefix("fd00::/112") ||
		cfg.NodePortAddresses.String() != "all" || !cfg.MasqueradeAll {
		t.Errorf("%+v", cfg)
	}
	if _, err := (Services{ServiceCIDRs: []string{"x"}}).Serving(); err == nil || !strings.HasPrefix(err.Error(), "services.serviceCIDRs[0]: ") {
		t.Errorf("error %v", err)
	}
}

func TestHousekeeping(t *testing.T) {
	n := Defaults().NAT44
	n.SessionLimit = 1000
	want := sessions.Config{Min: 1000, Max: 262144, Interval: 5 * time.Second, EndedAfter: time.Second}
	if diff := cmp.Diff(want, n.Housekeeping()); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestSNATSettings(t *testing.T) {
	s := Defaults().SNAT
	if got, err := s.Settings(); err != nil || got.Enabled || got.Address.IsValid() || !slices.Equal(got.OverlayPorts, []string{"4789/UDP"}) {
		t.Errorf("by default %+v, %v", got, err)
	}
	s = SNAT{Enabled: true, Interface: "nic1", Address: "192.0.2.1"}
	if got, err := s.Settings(); err != nil || !got.Enabled || got.Interface != "nic1" || got.Address != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := (SNAT{Address: "x"}).Settings(); err == nil || !strings.HasPrefix(err.Error(), "snat.address: ") {
		t.Errorf("error %v", err)
	}
}

func TestRenderer(t *testing.T) {
	n := Defaults().NAT44
	n.LoopbackIP, n.SessionLimit = "10.1.1.254", 262144
	cfg, err := n.Renderer("shop-a")
	want := nat44.Config{
		Node: "shop-a", TwiceNAT: netip.MustParseAddr("10.1.1.254"), Pads: true, Unreachable: true, MasqueradeClashes: true, SessionLimit: 262144, Timeouts: nat44.DefaultTimeouts(), DrainLimit: time.Hour,
	}
	if diff := cmp.Diff(want, cfg, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
		t.Errorf("%v, configuration (-want +got):\n%s", err, diff)
	}
}

// TestFamilies: each family belongs to one renderer.
func TestFamilies(t *testing.T) {
	for renderer, want := range map[string]map[string][]string{
		RendererNAT44: {"nat44": {"IPv4"}}, RendererCNAT: {"cnat": {"IPv4", "IPv6"}}, RendererDual: {"nat44": {"IPv4"}, "cnat": {"IPv6"}},
	} {
		if diff := cmp.Diff(want, (&Agent{Renderer: renderer}).Families()); diff != "" {
			t.Errorf("%s: %s", renderer, diff)
		}
	}
}
