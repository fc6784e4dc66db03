package interfaces

import (
	"net/netip"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// withInterfaces plays an interfaces actor that is connected to VPP.
func withInterfaces(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, PathInterfaces, nil, func(s *stage) {
		s.connected()
		play(s)
	})
}

// connected passes on the state of the wire, as the link would.
func (s *stage) connected() {
	s.wire.mu.Lock()
	state := s.wire.state
	s.wire.mu.Unlock()
	s.tell(&messages.LinkState{Up: state.GetUp(), Boot: state.GetBoot(), Session: state.GetSession(), Reason: state.GetReason()})
}

// set is the last interface set that the renderer was told.
func (s *stage) set() *messages.InterfaceSet {
	return latest[*messages.InterfaceSet](s, PathRenderer("nat44"))
}

// named finds an interface of a set.
func named(set *messages.InterfaceSet, name string) *messages.Interface {
	for _, i := range set.GetInterfaces() {
		if i.GetName() == name {
			return i
		}
	}
	return nil
}

func TestInterfacesLooksAtVPPAndTellsEverybody(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		for _, path := range []string{PathRenderer("nat44"), PathNodes, PathRegistry, PathIntrospect} {
			set := latest[*messages.InterfaceSet](s, path)
			if len(set.GetNodeAddresses()) != 1 || set.GetBoot() != "boot-0" || !named(set, "uplink0").GetFrontend() {
				t.Errorf("%s was told %v", path, set)
			}
		}
		if h := latest[*messages.Health](s, PathHealer); h.GetOk() || h.GetReason() != podsUnknown {
			t.Errorf("health %v although nobody has told of the pods", h)
		}
		s.tell(&messages.NodeChanged{Input: &messages.NodeInput{}})
		if h := latest[*messages.Health](s, PathHealer); !h.GetOk() {
			t.Errorf("health %v", h)
		}
	})
}

// TestInterfacesLooksAgain: whatever may have changed the set.
func TestInterfacesLooksAgain(t *testing.T) {
	pods := &messages.NodeInput{Pods: []*messages.Pod{{Namespace: "default", Name: "p2", Node: testNode, Addresses: []string{"10.1.1.2"}}}}
	for name, tc := range map[string]struct {
		what  func(s *stage)
		found func(set *messages.InterfaceSet) bool
	}{
		"a pod came":       {func(s *stage) { s.tell(&messages.NodeChanged{Input: pods}) }, func(set *messages.InterfaceSet) bool { return len(named(set, "pod2").GetPods()) == 1 }},
		"an endpoint came": {func(s *stage) { s.tell(&messages.LocalEndpoints{Addresses: []string{"10.1.1.3"}}) }, func(set *messages.InterfaceSet) bool { return named(set, "pod3").GetBackend() }},
		"VPP gave a hint": {func(s *stage) {
			_ = s.wire.vpp.SetInterface("uplink0", false)
			s.tell(&interfaceHint{})
		}, func(set *messages.InterfaceSet) bool { return !named(set, "uplink0").GetAdminUp() }},
		"time passed": {func(s *stage) {
			_ = s.wire.vpp.AddAddress("uplink0", netip.MustParsePrefix("192.168.17.1/24"))
			s.run(6 * time.Second)
		}, func(set *messages.InterfaceSet) bool { return len(set.GetNodeAddresses()) == 2 }},
		"VPP is another one": {func(s *stage) {
			s.wire.crash()
			s.connected()
			s.wire.connect()
			s.connected()
		}, func(set *messages.InterfaceSet) bool { return set.GetBoot() == "boot-1" }},
		"the connection is another one": {func(s *stage) {
			_ = s.wire.vpp.SetInterface("uplink0", false)
			s.wire.connect()
			s.connected()
		}, func(set *messages.InterfaceSet) bool { return !named(set, "uplink0").GetAdminUp() }},
	} {
		t.Run(name, func(t *testing.T) {
			withInterfaces(t, func(s *stage) {
				before := s.set()
				s.forget()
				tc.what(s)
				if set := s.set(); set == nil || !tc.found(set) || set.GetGeneration() <= before.GetGeneration() {
					t.Errorf("told %v", set)
				}
			})
		})
	}
}

// TestInterfacesSaysWhenAllIsKnown: pods, endpoints and addresses, also where there are none.
func TestInterfacesSaysWhenAllIsKnown(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		for _, step := range []struct {
			news any
			want bool
		}{
			{&messages.NodeChanged{Input: &messages.NodeInput{Self: testNodeObject()}}, false},
			{&messages.LocalEndpoints{}, true},
			{&messages.NodeChanged{Input: &messages.NodeInput{}}, true},
		} {
			s.tell(step.news)
			if got := s.set().GetComplete(); got != step.want {
				t.Errorf("after %T: complete is %v", step.news, got)
			}
		}
	})
}

func TestInterfacesRepeatsWithoutNews(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		before := s.set()
		s.forget()
		s.run(s.deps.Timing.Rediscover + time.Second)
		if got := s.set(); got.GetGeneration() != before.GetGeneration() || len(s.heard[PathJournal]) != 0 {
			t.Errorf("repeated %v, written down %v", got, s.heard[PathJournal])
		}
		s.forget()
		s.tell(&messages.Resync{Sibling: "registry"})
		if latest[*messages.InterfaceSet](s, PathRegistry) == nil {
			t.Error("does not answer who asks")
		}
		s.tell(&messages.Resync{Sibling: "link"})
		if latest[*messages.Resync](s, PathLink) == nil {
			t.Error("does not ask a new link")
		}
	})
}

func TestInterfacesWithoutVPPKeepsWhatItKnows(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.wire.disconnect()
		s.connected()
		s.forget()
		s.run(s.deps.Timing.Rediscover + time.Second)
		if s.set().GetBoot() != "boot-0" {
			t.Errorf("tells %v", s.set())
		}
		if h := latest[*messages.Health](s, PathHealer); h.GetOk() || h.GetReason() != "no connection to VPP" {
			t.Errorf("health %v", h)
		}
	})
}

func TestInterfacesIgnoresAnOvertakenLink(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(&messages.NodeChanged{Input: &messages.NodeInput{}})
		s.wire.connect()
		s.connected()
		s.tell(&messages.LinkState{Session: 1, Reason: "long ago"})
		if h := latest[*messages.Health](s, PathHealer); !h.GetOk() {
			t.Errorf("health %v", h)
		}
	})
}

// TestRestartedInterfacesTellsAnotherGeneration: the renderer must look at what its predecessor never told.
func TestRestartedInterfacesTellsAnotherGeneration(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		before := s.set()
		_ = s.wire.vpp.SetInterface("uplink0", false)
		s.kill()
		if latest[*messages.Resync](s, PathRegistry).GetSibling() != "interfaces" || latest[*messages.Resync](s, PathLink) == nil {
			t.Error("did not ask for the local endpoints and the link")
		}
		s.connected()
		if after := s.set(); after.GetGeneration() <= before.GetGeneration() {
			t.Errorf("generation %x after %x", after.GetGeneration(), before.GetGeneration())
		}
	})
}
