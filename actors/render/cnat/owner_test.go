package cnat_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	cnatapi "go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render/cnat"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	cnatvpp "github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// withIPv4 plays with a renderer of both families, and the service "a/a".
func withIPv4(t *testing.T, play func(s scene)) {
	t.Helper()
	config := cnatvpp.Config{Node: probe.Node, IPv4: true, SNAT: []netip.Addr{netip.MustParseAddr("10.1.1.254"), netip.MustParseAddr("fd00:1::fffe")}}
	view := func(key string, created int64, addresses ...string) *messages.ServiceView {
		v := rendertest.Forwarding(key, created, addresses...)
		for _, f := range v.Frontends {
			if f.Backends[0].Address = "10.1.1.2"; strings.Contains(f.Address, ":") {
				f.Backends[0].Address = "fd00:1::2"
			}
		}
		return v
	}
	rendertest.Play(t, rendertest.Adapted(cnat.New, config, view), []string{"a/a"}, func(s *rendertest.Stage) { play(scene{s}) })
}

// setAddress has another client of VPP set its SNAT address; 0.0.0.0 = none.
func (s scene) setAddress(ip4 string) {
	s.Helper()
	msg := &cnatapi.CnatSetSnatAddresses{SnatIP4: netip.MustParseAddr(ip4).As4(), SwIfIndex: ^interface_types.InterfaceIndex(0)}
	answers, err := virtual.NewReader(s.VPP.VPP).Do(s.Context(), []api.Message{msg})
	if err != nil || answers[0].Err != nil {
		s.Fatal(err, answers)
	}
}

// TestAddressOfAnotherClient: the family of the address is not served, which readiness and the
// service say; the other one is. When the address goes, both are.
func TestAddressOfAnotherClient(t *testing.T) {
	withIPv4(t, func(s scene) {
		s.Crash()
		s.setAddress("192.168.50.1")
		s.Reconnect(2)
		s.Begin(1, "a/a")
		s.Interfaces(2, probe.Uplink)
		s.Serve("a/a", 1, "10.96.0.1", "fd00:96::1")
		s.Run(time.Minute)
		const why = "its SNAT address 192.168.50.1 belongs to another client of VPP"
		if got, h := s.holds(), s.Health(); got != "fd00:96::1[[fd00:1::2]:2]" || h.GetOk() || !strings.Contains(h.GetReason(), why) {
			t.Errorf("VPP holds %s, health %v", got, h)
		}
		ack := s.Ack("a/a")
		if ack.GetState() == rendertest.InSync || !strings.Contains(ack.GetError(), why) || len(ack.GetApproximations()) != 2 {
			t.Errorf("acknowledged %v", ack)
		}
		s.setAddress("0.0.0.0")
		s.Tell(&messages.Verify{Reason: "test"})
		s.Run(time.Minute)
		if got, h := s.holds(), s.Health(); !strings.Contains(got, "10.96.0.1") || !h.GetOk() || s.State("a/a") != rendertest.InSync {
			t.Errorf("without the address VPP holds %s, health %v, acknowledged %v", got, h, s.Ack("a/a"))
		}
	})
}

// TestOwnAddress: a pod whose address VPP itself has in the pod's table does not reach itself, and
// its services and readiness say so.
func TestOwnAddress(t *testing.T) {
	withIPv4(t, func(s scene) {
		s.Begin(1, "a/a")
		set := s.Interfaces(2, probe.Uplink, "pod2")
		s.Tell(set)
		s.Serve("a/a", 1, "10.96.0.1")
		s.Run(time.Second)
		if n := len(s.Ack("a/a").GetApproximations()); n != 0 {
			t.Errorf("acknowledged %v", s.Ack("a/a"))
		}
		if h := s.Health(); h.GetReason() != "" {
			t.Errorf("health %v", h)
		}
		set = s.Interfaces(3, probe.Uplink, "pod2")
		set.Interfaces[1].OwnAddress = "10.1.1.2"
		s.Tell(set)
		s.Run(time.Second)
		found := s.Ack("a/a").GetApproximations()
		if len(found) != 1 || !strings.HasPrefix(found[0].GetRendered(), "such a connection is lost, unless") || s.State("a/a") != rendertest.InSync {
			t.Errorf("acknowledged %v", s.Ack("a/a"))
		}
		if h := s.Health(); !h.GetOk() || !strings.HasPrefix(h.GetReason(), "connections of a pod to itself through a service are lost, unless") {
			t.Errorf("health %v", h)
		}
	})
}
