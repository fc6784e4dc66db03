package interfaces

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
)

// steady has a node with two pods, of which p2 is an endpoint, after its start.
func steady(s *stage) {
	s.Helper()
	s.tell(nodeWith("p2 10.1.1.2", "p3 10.1.1.3"), &messages.LocalEndpoints{Addresses: []string{"10.1.1.2"}, Generation: 1})
	s.Run(2 * mostSettling)
	if h := s.health(); !h.GetOk() || h.GetReason() != "" {
		s.Fatalf("at the start: %v", h)
	}
}

// TestAMissingInterfaceIsNamed: a pod whose interface went is a warning, after the time that a CNI
// has, until it is back.
func TestAMissingInterfaceIsNamed(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		steady(s)
		if err := s.vpp.VPP.DeleteInterface("pod2"); err != nil {
			t.Fatal(err)
		}
		s.tell(&interfaceHint{})
		s.Run(settling - time.Second)
		if h := s.health(); h.GetReason() != "" || len(s.set().GetUnplaced()) != 0 {
			t.Errorf("too early: %v, %v", h, s.set().GetUnplaced())
		}
		s.Run(2 * time.Second)
		const want = "VPP has no interface for 1 addresses of this node, and connections to them are lost: default/p2 (10.1.1.2)"
		if h := s.health(); !h.GetOk() || h.GetReason() != want || strings.Join(s.set().GetUnplaced(), " ") != "10.1.1.2" {
			t.Errorf("%v, %v", h, s.set().GetUnplaced())
		}
		s.tell(nodeWith("p3 10.1.1.3"), &messages.LocalEndpoints{Generation: 2}) // the pod goes, too
		if h := s.health(); !h.GetOk() || h.GetReason() != "" || len(s.set().GetUnplaced()) != 0 {
			t.Errorf("after its end: %v, %v", h, s.set().GetUnplaced())
		}
	})
}

// TestPodsThatComeAndGoAreNoFault: Kubernetes knows a pod some seconds before VPP has its
// interface, or after. The set is told once for each change of an interface, and nobody is warned.
func TestPodsThatComeAndGoAreNoFault(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		steady(s)
		s.Forget()
		s.tell(nodeWith("p2 10.1.1.2", "p3 10.1.1.3", "new 10.1.1.77"))
		s.Run(settling / 2)
		s.tell(nodeWith("p2 10.1.1.2", "p3 10.1.1.3"))
		s.Run(2 * mostSettling)
		for _, h := range probe.All[*messages.Health](s.Stage, address.Healer) {
			if !h.GetOk() || h.GetReason() != "" {
				t.Errorf("health %v", h)
			}
		}
		if sets := probe.All[*messages.InterfaceSet](s.Stage, address.Renderer("nat44")); len(sets) != 0 {
			t.Errorf("told %v", sets)
		}
	})
}

// TestAnEmptyVPPIsNotReady: at once after its restart, and until the interfaces are back.
func TestAnEmptyVPPIsNotReady(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		steady(s)
		_ = s.vpp.Crash()
		s.connected()
		s.Forget()
		for _, name := range []string{"pod2", "pod3", "pod4", "uplink0"} {
			_ = s.vpp.VPP.DeleteInterface(name)
		}
		s.vpp.Connect()
		s.connected()
		s.Run(2 * settling)
		all := probe.All[*messages.Health](s.Stage, address.Healer)
		for _, h := range all {
			if h.GetOk() {
				t.Errorf("health %v", h)
			}
		}
		if last := all[len(all)-1]; !last.GetLost() || !strings.HasPrefix(last.GetReason(), "VPP has no uplink") || last.GetReach() != messages.Reach_REACH_NONE {
			t.Errorf("health %v", last)
		}
	})
}

// TestALostUplinkIsNotReady: while VPP runs, after the time that a CNI has to change it.
func TestALostUplinkIsNotReady(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		steady(s)
		_ = s.vpp.VPP.SetInterface("uplink0", false)
		s.tell(&interfaceHint{})
		s.Run(settling - time.Second)
		if h := s.health(); !h.GetOk() {
			t.Errorf("too early: %v", h)
		}
		s.Run(2 * time.Second)
		if h := s.health(); h.GetOk() || !h.GetLost() || h.GetReason() != "the uplink uplink0 is down in VPP" {
			t.Errorf("health %v", h)
		}
		_ = s.vpp.VPP.SetInterface("uplink0", true)
		s.tell(&interfaceHint{})
		if h := s.health(); !h.GetOk() || h.GetLost() || h.GetReason() != "" {
			t.Errorf("health %v", h)
		}
	})
}
