package interfaces

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	layers "github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func TestInterfacesReadsVPPAndTellsItsReceivers(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		for _, path := range receivers {
			set := probe.Latest[*messages.InterfaceSet](s.Stage, path)
			if len(set.GetNodeAddresses()) != 1 || set.GetBoot() != "boot-0" || !named(set, "uplink0").GetFrontend() {
				t.Errorf("%s was told %v", path, set)
			}
		}
		if h := s.health(); h.GetOk() || h.GetReason() != podsUnknown {
			t.Errorf("health %v although the pods are not known", h)
		}
		s.tell(&messages.NodeChanged{Input: &messages.NodeInput{}})
		if h := s.health(); !h.GetOk() || h.GetInterfaces() != s.set().GetGeneration() {
			t.Errorf("health %v", h)
		}
	})
}

// TestInterfacesReadsAgain whenever something may have changed the set.
func TestInterfacesReadsAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		what  func(s *stage)
		found func(set *messages.InterfaceSet) bool
	}{
		"a pod came":       {func(s *stage) { s.tell(nodeWith("p2 10.1.1.2")) }, func(set *messages.InterfaceSet) bool { return len(named(set, "pod2").GetPods()) == 1 }},
		"an endpoint came": {func(s *stage) { s.tell(&messages.LocalEndpoints{Addresses: []string{"10.1.1.3"}}) }, func(set *messages.InterfaceSet) bool { return named(set, "pod3").GetBackend() }},
		"VPP gave a hint": {func(s *stage) {
			_ = s.vpp.VPP.SetInterface("uplink0", false)
			s.tell(&interfaceHint{})
		}, func(set *messages.InterfaceSet) bool { return !named(set, "uplink0").GetAdminUp() }},
		"a process listens": {func(s *stage) {
			s.config.Listening = func(time.Time) []string { return []string{"9100/TCP"} }
			s.Run(s.config.Rediscover + time.Second)
		}, func(set *messages.InterfaceSet) bool { return len(set.GetListening()) == 1 }},
		"time passed": {func(s *stage) {
			_ = s.vpp.VPP.AddAddress("uplink0", netip.MustParsePrefix("192.168.17.1/24"))
			s.Run(s.config.Rediscover + time.Second)
		}, func(set *messages.InterfaceSet) bool { return len(set.GetNodeAddresses()) == 2 }},
		"a pod is in a table of its own": {func(s *stage) {
			_, err := s.vpp.VPP.AddInterfaceSpec(simulator.InterfaceSpec{Name: "vrf", TableID: 2, Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.1/24")}})
			if err != nil {
				s.Error(err)
			}
			s.tell(nodeWith("p2 10.1.2.2"))
		}, func(set *messages.InterfaceSet) bool {
			return slices.ContainsFunc(set.GetTables(), func(n *messages.TableNetwork) bool { return n.GetNetwork() == "10.1.2.2/32" && n.GetTable() == 2 })
		}},
		"another node is behind a tunnel in a table": {func(s *stage) {
			_, err := s.vpp.VPP.AddInterfaceSpec(simulator.InterfaceSpec{Name: "vrf", TableID: 2, Up: true})
			if err == nil {
				err = s.vpp.VPP.AddRoute(simulator.Route{Prefix: netip.MustParsePrefix("10.4.0.0/16"), Interface: "vrf"})
			}
			if err != nil {
				s.Error(err)
			}
			s.tell(&interfaceHint{}, &messages.NodeChanged{Input: &messages.NodeInput{Nodes: map[string]*messages.Node{"n2": {PodCidrs: []string{"10.4.7.0/24"}}}}})
		}, func(set *messages.InterfaceSet) bool {
			return len(set.GetTables()) == 1 && set.GetTables()[0].GetNetwork() == "10.4.7.0/24" && set.GetTables()[0].GetTable() == 2
		}},
		"VPP is another one": {func(s *stage) {
			_ = s.vpp.Crash()
			s.connected()
			s.vpp.Connect()
			s.connected()
		}, func(set *messages.InterfaceSet) bool { return set.GetBoot() == "boot-1" }},
		"the connection is another one": {func(s *stage) {
			_ = s.vpp.VPP.SetInterface("uplink0", false)
			s.vpp.Disconnect("lost")
			s.vpp.Connect()
			s.connected()
		}, func(set *messages.InterfaceSet) bool { return !named(set, "uplink0").GetAdminUp() }},
	} {
		t.Run(name, func(t *testing.T) {
			withInterfaces(t, func(s *stage) {
				before := s.set()
				s.Forget()
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
			{nodeWith(), false},
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

// TestInterfacesTellsWhatIsAskedFor: without news the set is repeated only when an actor has
// started, or in a roll call.
func TestInterfacesTellsWhatIsAskedFor(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		before := s.set()
		s.Forget()
		s.Run(2 * s.config.Rediscover)
		if s.set() != nil || len(s.Heard(address.Journal)) != 0 {
			t.Errorf("without news told %v, recorded %v", s.set(), s.Heard(address.Journal))
		}
		for _, question := range []any{&messages.Resync{Sibling: "registry"}, &messages.Resync{Sibling: "link"}} {
			s.Forget()
			s.Tell(question)
			for _, path := range receivers {
				if got := probe.Latest[*messages.InterfaceSet](s.Stage, path); got.GetGeneration() != before.GetGeneration() {
					t.Errorf("%T: %s was told %v", question, path, got)
				}
			}
			resync, _ := question.(*messages.Resync)
			if asked := probe.Latest[*messages.Resync](s.Stage, address.Link) != nil; asked != (resync.GetSibling() == "link") {
				t.Errorf("%v: the link was asked: %t", question, asked)
			}
		}
	})
}

func TestInterfacesWithoutVPPKeepsWhatItKnows(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.vpp.Disconnect("lost")
		s.connected()
		s.Forget()
		s.tell(&messages.Resync{Sibling: "nodes"}, &messages.LocalEndpoints{Addresses: []string{"10.1.1.3"}})
		s.Run(2 * s.config.Rediscover)
		if s.set().GetBoot() != "boot-0" {
			t.Errorf("tells %v", s.set())
		}
		if h := s.health(); h.GetOk() || h.GetReason() != "no connection to VPP" {
			t.Errorf("health %v", h)
		}
	})
}

func TestInterfacesIgnoresAnEarlierConnection(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(&messages.NodeChanged{Input: &messages.NodeInput{}})
		s.vpp.Disconnect("lost")
		s.vpp.Connect()
		s.connected()
		s.tell(&messages.LinkState{Session: 1, Reason: "long ago"})
		if h := s.health(); !h.GetOk() {
			t.Errorf("health %v", h)
		}
	})
}

// TestInterfacesThatCannotBeRead: the set stays, the node is not ready, and the next discovery
// comes soon.
func TestInterfacesThatCannotBeRead(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(nodeWith(), &messages.LocalEndpoints{})
		s.Run(settling + time.Second)
		before := s.set()
		s.vpp.Disconnect("the link has not noticed yet")
		s.tell(&interfaceHint{})
		if h := s.health(); h.GetOk() || h.GetReach() != messages.Reach_REACH_DOWNSTREAM {
			t.Errorf("health %v", h)
		}
		s.Run(mostSettling)
		s.vpp.Connect()
		s.Run(2 * s.config.RediscoverSoon)
		if h := s.health(); !h.GetOk() || s.set().GetGeneration() != before.GetGeneration() {
			t.Errorf("health %v, set %v", h, s.set())
		}
	})
}

// TestRestartedInterfacesTellsAnotherGeneration: the renderer must take up what its predecessor
// never told.
func TestRestartedInterfacesTellsAnotherGeneration(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		before := s.set()
		_ = s.vpp.VPP.SetInterface("uplink0", false)
		s.Forget()
		s.Kill()
		for _, path := range []string{address.Registry, address.Link} {
			if got := probe.Latest[*messages.Resync](s.Stage, path); got.GetSibling() != "interfaces" || got.GetIncarnation() != 2 {
				t.Errorf("%s was asked with %v", path, got)
			}
		}
		s.connected()
		if after := s.set(); after.GetGeneration() <= before.GetGeneration() {
			t.Errorf("generation %x after %x", after.GetGeneration(), before.GetGeneration())
		}
	})
}

// discoveries counts how often VPP lists its interfaces in a time: each discovery does so once.
func (s *stage) discoveries(d time.Duration) (n int) {
	s.Helper()
	before := s.lists
	s.Run(d)
	return s.lists - before
}

// TestDiscoveriesFollowChanges: soon after each other after a change, and while a pod has no
// interface, which is waited for a minute; seldom otherwise.
func TestDiscoveriesFollowChanges(t *testing.T) {
	perform(t, func(s *stage) {
		s.connected()
		s.tell(nodeWith("p2 10.1.1.2"), &messages.LocalEndpoints{})
		if n := s.discoveries(settling); n < 8 || n > 12 {
			t.Errorf("%d discoveries in the first %s, want one a second", n, settling)
		}
		s.Run(s.config.Rediscover)
		if n := s.discoveries(10 * s.config.Rediscover); n < 9 || n > 11 {
			t.Errorf("%d discoveries in ten minutes without a change, want one a minute", n)
		}
		s.tell(nodeWith("p2 10.1.1.2", "p9 10.1.1.9")) // no interface leads there
		if n := s.discoveries(mostSettling); n < 55 || n > 62 {
			t.Errorf("%d discoveries while a pod has no interface, want one a second", n)
		}
		s.Run(s.config.Rediscover)
		if n := s.discoveries(10 * s.config.Rediscover); n < 9 || n > 11 {
			t.Errorf("%d discoveries in ten minutes for a pod that never gets an interface, want one a minute", n)
		}
		s.tell(&interfaceHint{})
		if n := s.discoveries(settling); n < 8 || n > 12 {
			t.Errorf("%d discoveries after a hint, want one a second", n)
		}
	})
}

// TestQuietDiscoveriesReadAShare: while nothing changes, the number of requests of a discovery does
// not grow with the interfaces. After a hint, everything is read.
func TestQuietDiscoveriesReadAShare(t *testing.T) {
	perform(t, func(s *stage) {
		for i := range 200 {
			if _, err := s.vpp.VPP.AddPod("more"+string(rune('a'+i/20))+string(rune('a'+i%20)), netip.AddrFrom4([4]byte{10, 1, 3, byte(i + 1)})); err != nil {
				t.Fatal(err)
			}
		}
		s.connected()
		s.tell(nodeWith(), &messages.LocalEndpoints{})
		s.Run(2 * s.config.Rediscover)
		before := s.dumps
		s.Run(s.config.Rediscover)
		quiet := s.dumps - before
		before = s.dumps
		s.tell(&interfaceHint{})
		if all := s.dumps - before; quiet == 0 || all < 3*quiet {
			t.Errorf("%d requests without a change, %d after a hint", quiet, all)
		}
	})
}

// TestInterfacesTellsThePlaceOfSNAT: only where SNAT is enabled, and when the set is complete.
func TestInterfacesTellsThePlaceOfSNAT(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		perform(t, func(s *stage) {
			s.config.SNAT = external.SNAT{Enabled: enabled}
			s.connected()
			place := func() *layers.Place { return probe.Latest[*layers.Place](s.Stage, address.External) }
			if place() != nil {
				t.Errorf("told before all is known: %v", place())
			}
			s.tell(nodeWith(), &messages.LocalEndpoints{})
			if got := place(); (got != nil) != enabled || enabled && (got.Hairpin.String() != "10.1.1.254" || got.Set.GetGeneration() != s.set().GetGeneration()) {
				t.Errorf("SNAT %t: told %+v", enabled, got)
			}
		})
	}
}

// TestInterfacesNamesPodsInABridge: pods that answer each other past NAT make the node not ready
// until VPP is changed, without an event of VPP.
func TestInterfacesNamesPodsInABridge(t *testing.T) {
	withInterfaces(t, func(s *stage) {
		s.tell(&messages.LocalEndpoints{}, nodeWith("a 10.1.9.2", "b 10.1.9.3"))
		vpp := s.vpp.VPP
		try := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"host-a", "host-b"} {
			_, err := vpp.AddInterface(name, nil, true)
			try(err)
		}
		_, err := vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: "bvi0", Kind: simulator.KindLoopback, Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.9.1/24")}, Up: true})
		try(err)
		for _, step := range []struct {
			change func() error
			want   string
		}{
			{func() error { return vpp.AddBridge(5, "bvi0", 0, "host-a", "host-b") }, "connections to endpoints behind bvi0 are lost: pods in bridge domain 5 answer each other past NAT: put host-a, host-b into one"},
			{func() error { return vpp.AddBridge(5, "bvi0", 1, "host-a", "host-b") }, "need proxy ARP"},
			{func() error {
				return vpp.SetProxyARP("bvi0", netip.MustParseAddr("10.1.9.2"), netip.MustParseAddr("10.1.9.200"))
			}, ""},
		} {
			try(step.change())
			s.Run(2 * s.config.Rediscover)
			if h := s.health(); h.GetOk() != (step.want == "") || !strings.Contains(h.GetReason(), step.want) {
				t.Errorf("health %v, want %q", h, step.want)
			}
			if got := named(s.set(), "bvi0").GetFault(); (got == "") != (step.want == "") {
				t.Errorf("the set says %q", got)
			}
		}
	})
}
