package cnat_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render/cnat"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	cnatvpp "github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// scene is the cnat renderer on a stage.
type scene struct{ *rendertest.Stage }

// withRenderer plays with the services "a/a" and "b/b".
func withRenderer(t *testing.T, play func(s scene)) {
	t.Helper()
	config := cnatvpp.Config{Node: probe.Node, SNAT: []netip.Addr{netip.MustParseAddr("fd00:1::fffe")}}
	view := func(key string, created int64, addresses ...string) *messages.ServiceView {
		v := rendertest.Forwarding(key, created, addresses...)
		for _, f := range v.Frontends {
			f.Backends[0].Address = "fd00:1::2"
		}
		return v
	}
	rendertest.Play(t, rendertest.Adapted(cnat.New, config, view), []string{"a/a", "b/b"}, func(s *rendertest.Stage) { play(scene{s}) })
}

// holds are the rows in VPP.
func (s scene) holds() string {
	s.Helper()
	state, err := cnatvpp.Read(s.Context(), virtual.NewReader(s.VPP.VPP), false, nil, nil)
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for k, h := range state.Rows {
		all = append(all, fmt.Sprintf("%s%v", k.Addr, h.Backends))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// put adds a row as an earlier run would.
func (s scene) put(vip, backend string) {
	s.Helper()
	row := cnatvpp.Row{Key: rule.Key{Addr: netip.MustParseAddr(vip), Port: 80, Proto: 6}, Backends: []netip.AddrPort{netip.MustParseAddrPort(backend)}}
	for _, r := range cnatvpp.Apply(s.Context(), virtual.NewReader(s.VPP.VPP), []cnatvpp.Op{{Verb: cnatvpp.PutRow, Key: row.Key, Row: &row}}) {
		if r.Err != nil {
			s.Fatal(r.Err)
		}
	}
}

// TestAnAddressThatSeveralMayClaim: VPP does not say whose row it holds, so nothing is changed
// there before the barrier.
func TestAnAddressThatSeveralMayClaim(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Crash()
		s.put("2001:db8:9::9", "[fd00:1::77]:80")
		s.Reconnect(2)
		s.Begin(1, "a/a", "b/b")
		v := s.View("a/a", 1, "2001:db8:9::9")
		v.Frontends[0].Scope, v.Frontends[0].Kind = messages.Scope_SCOPE_EXTERNAL, messages.FrontendKind_KIND_LOAD_BALANCER_IP
		s.Render(1, v)
		if got := s.holds(); got != "2001:db8:9::9[[fd00:1::77]:80]" {
			t.Errorf("before the barrier: %s", got)
		}
		s.Serve("b/b", 1)
		s.Run(time.Second)
		if got := s.holds(); got != "2001:db8:9::9[[fd00:1::2]:10]" || s.State("a/a") != rendertest.InSync {
			t.Errorf("after it: %s, acknowledged %v", got, s.Ack("a/a"))
		}
	})
}

// TestRowsDoNotGrowWithoutMemory: where VPP's memory is critical, a row has as many endpoints as
// before and is not replaced for session affinity. The service says so, and has everything when
// there is memory again.
func TestRowsDoNotGrowWithoutMemory(t *testing.T) {
	withRenderer(t, func(s scene) {
		serve := func(generation uint64, affinity uint32, endpoints ...string) {
			v := s.View("a/a", 1, "fd00:96::1")
			v.Frontends[0].AffinitySeconds, v.Frontends[0].Backends = affinity, nil
			for _, e := range endpoints {
				v.Frontends[0].Backends = append(v.Frontends[0].Backends, &messages.Backend{Address: e, Port: 80})
			}
			s.Render(generation, v)
		}
		holds := func(when, want, reason string) {
			t.Helper()
			s.Run(2 * time.Second)
			ack := s.Ack("a/a")
			if got := s.holds(); got != want || !strings.Contains(ack.GetError(), reason) || (ack.GetState() == rendertest.InSync) != (reason == "") || !s.Health().GetOk() {
				t.Errorf("%s: VPP holds %s, acknowledged %v, %v", when, got, ack, s.Health())
			}
		}
		s.Memory(1, 50, "a/a")
		serve(1, 0, "fd00:1::2", "fd00:1::3")
		holds("enough memory", "fd00:96::1[[fd00:1::2]:80 [fd00:1::3]:80]", "")
		s.Memory(2, 7, "a/a")
		serve(2, 0, "fd00:1::1", "fd00:1::3", "fd00:1::4")
		holds("critical", "fd00:96::1[[fd00:1::1]:80 [fd00:1::3]:80]", "it has 2 of 3 endpoints")
		s.Free = 14
		holds("low", "fd00:96::1[[fd00:1::1]:80 [fd00:1::3]:80 [fd00:1::4]:80]", "")
		serve(3, 600, "fd00:1::1", "fd00:1::3")
		holds("low, with affinity", "fd00:96::1[[fd00:1::1]:80 [fd00:1::3]:80]", "session affinity")
		s.Free = 50
		holds("enough again", "fd00:96::1[[fd00:1::1]:80 [fd00:1::3]:80]", "")
	})
}

// TestInterfaces: with the first service of IPv6, interfaces get their nodes and tables. One that
// is detached loses its nodes.
func TestInterfaces(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		set := s.Interfaces(2, probe.Uplink, "pod2", "pod3")
		set.Interfaces[1].Pods = []string{"default/p2"}
		s.Tell(set)
		holds := func() string {
			var found []string
			for line := range strings.Lines(s.VPP.VPP.State()) {
				if line = strings.TrimSpace(line); strings.Contains(line, "cnat-input-ip6") || strings.HasPrefix(line, "snat table") {
					found = append(found, line)
				}
			}
			return strings.Join(found, "; ")
		}
		if got := holds(); got != "" {
			t.Errorf("without a service VPP holds %s", got)
		}
		s.Serve("a/a", 1, "fd00:96::1")
		if got := holds(); got != "ip6-unicast cnat-input-ip6 on pod2; ip6-unicast cnat-input-ip6 on pod3; ip6-unicast cnat-input-ip6 on uplink0; "+
			"snat table 1: uplink0; snat table 2: pod2; snat table 2: pod3; snat table 2: uplink0; snat table 3: pod3" {
			t.Errorf("VPP holds %s", got)
		}
		set = s.Interfaces(3, probe.Uplink, "pod2", "pod3")
		set.Interfaces[1].Pods = []string{"default/p2"}
		set.Interfaces[2].Frontend, set.Interfaces[2].Detached = false, true
		s.Tell(set)
		if got := holds(); got != "ip6-unicast cnat-input-ip6 on pod2; ip6-unicast cnat-input-ip6 on uplink0; "+
			"snat table 1: uplink0; snat table 2: pod2; snat table 2: uplink0" {
			t.Errorf("without pod3 VPP holds %s", got)
		}
	})
}

// TestTargetsFollowPodNetworks: of many endpoints on other nodes the first are targets, as long as
// no pod network of another node is known to stand for all of them. The targets stay when that
// network loses an endpoint.
func TestTargetsFollowPodNetworks(t *testing.T) {
	withRenderer(t, func(s scene) {
		serve := func(generation uint64, endpoints int) {
			v := s.View("a/a", 1, "fd00:96::1")
			v.Frontends[0].Backends = nil
			for i := range endpoints {
				b := &messages.Backend{Address: fmt.Sprintf("fd00:2::%x", 1+i), Port: 8080}
				v.Frontends[0].Backends = append(v.Frontends[0].Backends, b)
			}
			s.Render(generation, v)
			s.Run(time.Second)
		}
		excludes := func(address string) bool {
			for line := range strings.Lines(s.VPP.VPP.State()) {
				network, is := strings.CutPrefix(strings.TrimSpace(line), "snat excludes ")
				if is && netip.MustParsePrefix(network).Contains(netip.MustParseAddr(address)) {
					return true
				}
			}
			return false
		}
		s.Begin(1, "a/a")
		s.Interfaces(2, probe.Uplink)
		serve(1, 40)
		if excludes("fd00:2::20") || !excludes("fd00:2::21") || !excludes("fd00:2::1000") {
			t.Errorf("without pod networks VPP holds\n%s", s.VPP.VPP.State())
		}
		begin := rendertest.BeginMessage(2, "a/a")
		begin.PodNetworks = []string{"fd00:2::/64"}
		s.Tell(begin)
		serve(2, 40)
		if excludes("fd00:2::1") || excludes("fd00:2::1000") || !excludes("fd00:3::1") {
			t.Errorf("with a pod network VPP holds\n%s", s.VPP.VPP.State())
		}
		writes := s.Writes()
		serve(3, 39)
		if s.Writes() != writes+1 {
			t.Errorf("an endpoint less costs %d writes", s.Writes()-writes)
		}
		serve(4, 3)
		if excludes("fd00:2::3") || !excludes("fd00:2::4") {
			t.Errorf("with few endpoints VPP holds\n%s", s.VPP.VPP.State())
		}
	})
}

// TestWithoutPlugin: the renderer is not ready and says which plugin to load.
func TestWithoutPlugin(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Lacks = "cnat_"
		s.Crash()
		s.Reconnect(2)
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "fd00:96::1")
		s.Run(time.Minute)
		if h := s.Health(); h.GetOk() || !strings.Contains(h.GetReason(), "cnat_") {
			t.Errorf("health %v", h)
		}
		s.Lacks = ""
		s.Crash()
		s.Reconnect(3)
		s.Run(time.Minute)
		if h := s.Health(); !h.GetOk() || s.State("a/a") != rendertest.InSync {
			t.Errorf("afterwards %v, %v", h, s.Ack("a/a"))
		}
	})
}

// TestRestartLooksAtRemoteEndpointsOnce: after a restart of the agent on a VPP that has everything,
// the memory that a service takes does not grow with the endpoints of all others.
func TestRestartLooksAtRemoteEndpointsOnce(t *testing.T) {
	const n, most = 1000, 100 << 10
	keys, views := make([]string, n), map[string]*messages.ServiceView{}
	for i := range keys {
		keys[i] = fmt.Sprintf("a/%04d", i)
		f := &messages.Frontend{Address: fmt.Sprintf("fd00:96::%x", 1+i), Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action_ACTION_FORWARD}
		for k := range 5 {
			f.Backends = append(f.Backends, &messages.Backend{Address: fmt.Sprintf("fd00:2:%x::%x", k, 1+i), Port: 8080})
		}
		views[keys[i]] = &messages.ServiceView{Key: keys[i], Created: 1, Frontends: []*messages.Frontend{f}}
	}
	config := cnatvpp.Config{Node: probe.Node, SNAT: []netip.Addr{netip.MustParseAddr("fd00:1::fffe")}}
	view := func(key string, _ int64, _ ...string) *messages.ServiceView { return views[key] }
	rendertest.Play(t, rendertest.Adapted(cnat.New, config, view), keys, func(s *rendertest.Stage) {
		render := func(generation uint64) {
			s.Begin(generation, keys...)
			for _, key := range keys {
				s.Render(generation, views[key])
			}
			s.Run(time.Second)
			for _, key := range keys {
				if state := s.State(key); state != rendertest.InSync {
					t.Fatalf("%s is %v", key, state)
				}
			}
		}
		render(1)
		writes := s.Writes()
		s.Kill()
		s.Connected()
		s.Found(2)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		render(2)
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / n; each > most || s.Writes() != writes {
			t.Errorf("%d bytes for each service, %d writes", each, s.Writes()-writes)
		}
	})
}
