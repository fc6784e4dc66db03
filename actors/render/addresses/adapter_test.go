package addresses_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vrrp"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render/addresses"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/owned"
	vrrpvpp "github.com/troupe-vpp/troupe/vpp/vrrp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a renderer whose pool has 192.168.16.96/28 with the virtual router IDs 10 to 25.
type stage struct {
	*rendertest.Stage
	foreign map[string]bool // objects that the agent has not made
	node    *messages.Node
	begun   uint64
}

// play plays with the services "a/a" and "b/b" in the list, and a VPP whose uplink has
// 192.168.16.1/24.
func play(t *testing.T, do func(s *stage)) {
	t.Helper()
	s := &stage{foreign: map[string]bool{}, node: probe.ThisNode(), begun: 1}
	config := addresses.Config{Interval: 500 * time.Millisecond, Made: func(o owned.Object) bool { return !s.foreign[o.Value] }}
	rendertest.Play(t, rendertest.Adapted(addresses.New, config, nil), []string{"a/a", "b/b"}, func(inner *rendertest.Stage) {
		s.Stage = inner
		s.found()
		s.begin()
		do(s)
	})
}

// found sends the interfaces with their addresses.
func (s *stage) found() {
	s.begun++
	set := s.Interfaces(s.begun, probe.Uplink, "pod2")
	set.Interfaces[0].AdminUp, set.Interfaces[0].Kind, set.Interfaces[0].Addresses = true, messages.InterfaceKind_INTERFACE_UPLINK, []string{probe.UplinkAddress + "/24"}
	set.Interfaces[1].AdminUp, set.Interfaces[1].Kind, set.Interfaces[1].Addresses = true, messages.InterfaceKind_INTERFACE_POD, []string{"192.168.17.1/24"}
	s.Tell(set)
}

// begin sends the list of services with the node and the pool.
func (s *stage) begin() {
	s.begun++
	m := rendertest.BeginMessage(s.begun, "a/a", "b/b")
	m.Node.Node = s.node
	m.AddressPools = []*messages.AddressPool{{Name: "p", Ranges: []string{"192.168.16.96-192.168.16.111", "192.168.17.0-192.168.17.3"}, FirstRouter: 10, LastRouter: 29}}
	s.Tell(m)
}

// serve sends a service with load-balancer addresses. Each with "-" before it has no endpoint here.
func (s *stage) serve(key string, generation uint64, texts ...string) {
	v := &messages.ServiceView{Key: key, Created: 1}
	for _, text := range texts {
		addr, dropped := strings.CutPrefix(text, "-")
		f := &messages.Frontend{Address: addr, Port: 80, Protocol: messages.Protocol_TCP, Kind: messages.FrontendKind_KIND_LOAD_BALANCER_IP, Action: messages.Action_ACTION_FORWARD}
		if dropped {
			f.Action = messages.Action_ACTION_DROP
		}
		v.Frontends = append(v.Frontends, f)
	}
	s.Render(generation, v)
}

func (s *stage) forwards(ok, before bool) { s.Tell(&report.Forwarding{OK: ok, Before: before}) }

// expect compares what VPP holds: "ID priority addresses STATE".
func (s *stage) expect(when string, want ...string) {
	s.Helper()
	all, err := vrrpvpp.Read(context.Background(), s.VPP.Reader(), func(vrrpvpp.Key) bool { return true })
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, k := range slices.SortedFunc(maps.Keys(all), vrrpvpp.Key.Compare) {
		h := all[k]
		rest := "low"
		if h.Priority > 1 {
			rest = "high"
		}
		got = append(got, fmt.Sprintf("%d %s %v running %t", k.ID, rest, h.Addresses, h.Running()))
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		s.Errorf("%s: virtual routers (-want +got):\n%s", when, d)
	}
}

// TestAddresses: services, the node, what the healer says => virtual routers in VPP.
func TestAddresses(t *testing.T) {
	play(t, func(s *stage) {
		const one, two = "11 high [192.168.16.97] running true", "12 high [192.168.16.98] running true"
		s.forwards(true, true)
		s.serve("a/a", 1, "192.168.16.97", "203.0.113.1")
		s.expect("b/b may have the address, too, without an endpoint")
		s.Kill()
		s.Connected()
		s.found()
		s.begin()
		s.serve("a/a", 1, "192.168.16.97", "203.0.113.1")
		s.serve("b/b", 1, "-192.168.16.98")
		s.expect("before the node is ready")
		s.forwards(false, false)
		s.expect("the node is not ready yet")
		s.forwards(true, true)
		s.expect("ready", one)
		s.serve("b/b", 2, "192.168.16.98")
		s.expect("an endpoint has come", one, two)
		s.serve("b/b", 3, "-192.168.16.98", "192.168.16.97")
		s.expect("the endpoint has gone, the other address is shared", one)
		s.serve("b/b", 4, "-192.168.16.97")
		s.expect("a service of the address has no endpoint here")
		s.serve("b/b", 5)
		s.expect("it has no addresses any more", one)
		s.forwards(false, true)
		s.expect("the node cannot program VPP")
		s.forwards(true, true)
		s.Tell(&addresses.Leave{})
		s.expect("the node was asked to leave")
		s.Tell(&addresses.Leave{Back: true})
		s.expect("and to come back", one)
		s.node = &messages.Node{Name: probe.Node, Uid: "u1", Excluded: true}
		s.begin()
		s.expect("the node is cordoned", "11 low [192.168.16.97] running true")
		if state := s.State("a/a"); state != rendertest.InSync {
			t.Errorf("a/a is %s", state)
		}
	})
}

// TestAddressesOfAnEarlierRun: the agent restarts, VPP has its virtual routers => they stay, and
// are not touched before the node is ready; what no service wants goes after that.
func TestAddressesOfAnEarlierRun(t *testing.T) {
	play(t, func(s *stage) {
		s.serve("a/a", 1, "192.168.16.97")
		s.serve("b/b", 1, "192.168.16.98")
		s.forwards(true, true)
		s.expect("ready", "11 high [192.168.16.97] running true", "12 high [192.168.16.98] running true")
		writes := s.Writes()
		s.Kill()
		s.Connected()
		s.found()
		s.begin()
		s.serve("a/a", 1, "192.168.16.97")
		s.serve("b/b", 1, "192.168.16.99")
		s.forwards(false, false)
		s.expect("the agent has restarted", "11 high [192.168.16.97] running true", "12 high [192.168.16.98] running true")
		if s.Writes() != writes {
			t.Errorf("%d writes before the node is ready", s.Writes()-writes)
		}
		s.forwards(true, true)
		s.expect("ready again", "11 high [192.168.16.97] running true", "13 high [192.168.16.99] running true")
	})
}

// TestAddressesOfOthers: another client of VPP has a virtual router => it stays, and the service is
// told.
func TestAddressesOfOthers(t *testing.T) {
	play(t, func(s *stage) {
		s.foreign["11/IPv4"] = true
		for _, m := range (vrrpvpp.Op{Verb: vrrpvpp.Add, Key: vrrpvpp.Key{Interface: s.VPP.VPP.Interfaces()[probe.Uplink], ID: 11}, Router: vrrpvpp.Router{
			Priority: 100, Interval: time.Second, Addresses: []netip.Addr{netip.MustParseAddr("192.168.16.200")},
		}}).Messages() {
			if _, err := s.VPP.Reader().Do(context.Background(), []api.Message{m}); err != nil {
				t.Fatal(err)
			}
		}
		s.Kill()
		s.Connected()
		s.found()
		s.begin()
		s.forwards(true, true)
		s.serve("a/a", 1, "192.168.16.97")
		s.serve("b/b", 1)
		s.expect("another client has the router", "11 high [192.168.16.200] running true")
		if conflicts := s.Ack("a/a").GetConflicts(); len(conflicts) != 1 || conflicts[0].GetOwner() != "VPP: a virtual router of another client" {
			t.Errorf("conflicts %v", conflicts)
		}
	})
}

// TestAddressesWithoutPlugin: VPP has no plugin vrrp => the services are in sync otherwise, and the
// warning says so.
func TestAddressesWithoutPlugin(t *testing.T) {
	play(t, func(s *stage) {
		s.Lacks = "vrrp"
		s.Kill()
		s.Connected()
		s.found()
		s.begin()
		s.forwards(true, true)
		s.serve("a/a", 1, "192.168.16.97")
		s.serve("b/b", 1)
		if state := s.State("a/a"); state != rendertest.InSync {
			t.Errorf("a/a is %s", state)
		}
		if h := s.Health(); !h.GetOk() || !strings.Contains(h.GetReason(), "plugin vrrp is not loaded") {
			t.Errorf("health %v", h)
		}
	})
}

var _ = vrrp.APIVersion
