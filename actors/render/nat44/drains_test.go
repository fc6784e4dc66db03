package nat44_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// served is a service with one cluster IP; endpoints that end in "-" are in the slices, but not
// used.
func served(key, vip string, protocol messages.Protocol, endpoints ...string) *messages.ServiceView {
	f := &messages.Frontend{Address: vip, Port: 80, Protocol: protocol, Action: messages.Action_ACTION_REJECT}
	for _, text := range endpoints {
		addr, drains := strings.CutSuffix(text, "-")
		b := &messages.Backend{Address: addr, Port: 8080, Local: true}
		if drains {
			f.Draining = append(f.Draining, b)
			continue
		}
		f.Action, f.Backends = messages.Action_ACTION_FORWARD, append(f.Backends, b)
	}
	return &messages.ServiceView{Key: key, Created: 1, Frontends: []*messages.Frontend{f}}
}

const tcp, udp = messages.Protocol_TCP, messages.Protocol_UDP

// connection is an open connection through a row.
type connection struct {
	packet  simulator.Packet
	backend netip.AddrPort
}

// connect opens a connection from pod2 to each endpoint of a VIP and returns them by endpoint.
func (s scene) connect(vip string, protocol messages.Protocol, endpoints ...string) map[string]connection {
	s.Helper()
	all := map[string]connection{}
	for port := uint16(1024); len(all) < len(endpoints) && port < 2000; port++ {
		p := simulator.Packet{
			In: "pod2", Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), port+uint16(len(vip))*1000),
			Dst: netip.AddrPortFrom(netip.MustParseAddr(vip), 80), Proto: uint8(protocol),
		}
		v := s.VPP.VPP.Send(p)
		if at := v.Dst.Addr().String(); slices.Contains(endpoints, at) {
			all[at] = connection{p, v.Dst}
		}
	}
	if len(all) < len(endpoints) {
		s.Fatalf("no connection to all of %v", endpoints)
	}
	return all
}

// lives reports whether the next packet of a connection arrives where the others did. A packet
// without SYN makes no session.
func (s scene) lives(c connection) bool {
	if c.packet.Proto == simulator.ProtoTCP {
		c.packet.Flags = simulator.ACK
	}
	v := s.VPP.VPP.Send(c.packet)
	return v.Action == simulator.Delivered && v.Dst == c.backend
}

// reached opens new connections and returns the endpoints that get them. A packet that is led back
// to the frontend would follow routes; here are none.
func (s scene) reached(vip string, protocol messages.Protocol) (endpoints []string) {
	first := uint16(10000 + 64*s.VPP.VPP.SessionCount())
	for port := range uint16(64) {
		v := s.VPP.VPP.Send(simulator.Packet{
			In: "pod2", Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), first+port),
			Dst: netip.AddrPortFrom(netip.MustParseAddr(vip), 80), Proto: uint8(protocol),
		})
		if at := v.Dst.Addr().String(); v.Action == simulator.Delivered && at != vip && !slices.Contains(endpoints, at) {
			endpoints = append(endpoints, at)
		}
	}
	slices.Sort(endpoints)
	return endpoints
}

// drainStory plays with a service a/a of these endpoints and a connection to each of them.
func drainStory(t *testing.T, protocol messages.Protocol, play func(s scene, open map[string]connection)) {
	t.Helper()
	withRenderer(t, func(s scene) {
		s.Keeps = true
		s.Begin(1, "a/a")
		s.Render(1, served("a/a", "10.96.0.1", protocol, "10.1.1.3", "10.1.1.4", "10.1.2.9"))
		s.settled("at the start", "a/a")
		play(s, s.connect("10.96.0.1", protocol, "10.1.1.4", "10.1.2.9"))
	})
}

// TestDrains: an endpoint that is not used any more keeps its connections while it is in the
// slices. When it has left them, its connections are kept until they end.
func TestDrains(t *testing.T) {
	drainStory(t, tcp, func(s scene, open map[string]connection) {
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4-", "10.1.2.9"))
		s.settled("one drains", "a/a")
		if got := s.reached("10.96.0.1", tcp); !slices.Equal(got, []string{"10.1.1.3", "10.1.2.9"}) || !s.lives(open["10.1.1.4"]) {
			t.Errorf("new connections reach %v", got)
		}
		s.noSessions("10.1.1.4:8080")
		if !s.lives(open["10.1.1.4"]) {
			t.Error("an endpoint in the slices has lost its entry")
		}
		s.Render(3, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4", "10.1.2.9-"))
		s.Render(4, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4"))
		s.settled("another one has left the slices", "a/a")
		if got := s.reached("10.96.0.1", tcp); !slices.Equal(got, []string{"10.1.1.3", "10.1.1.4"}) || !s.lives(open["10.1.1.4"]) || !s.lives(open["10.1.2.9"]) {
			t.Errorf("new connections reach %v", got)
		}
		if row := s.VPP.VPP.Rows()[0]; !strings.Contains(row, "10.1.2.9:8080") {
			t.Errorf("VPP holds %s", row)
		}
		s.Kill()
		writes := s.writes(func() {
			s.Connected()
			s.Found(2)
			s.Begin(2, "a/a")
			s.Render(4, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4"))
		})
		s.settled("another renderer", "a/a")
		if writes != 0 || !s.lives(open["10.1.2.9"]) {
			t.Errorf("%d writes of another renderer", writes)
		}
		s.noSessions("10.1.2.9:8080")
		if row := s.VPP.VPP.Rows()[0]; strings.Contains(row, "10.1.2.9:8080") || s.lives(open["10.1.2.9"]) || !s.lives(open["10.1.1.4"]) {
			t.Errorf("VPP holds %s", row)
		}
		s.settled("it is gone", "a/a")
	})
}

// TestDrainsAll: a service whose endpoints are all unused, or gone, refuses new connections and
// keeps the open ones; its row goes with the last of them.
func TestDrainsAll(t *testing.T) {
	for name, endpoints := range map[string][]string{"unused": {"10.1.1.3-", "10.1.1.4-", "10.1.2.9-"}, "gone": nil} {
		t.Run(name, func(t *testing.T) {
			drainStory(t, tcp, func(s scene, open map[string]connection) {
				s.Render(2, served("a/a", "10.96.0.1", tcp, endpoints...))
				s.settled("without endpoints", "a/a")
				if got := s.reached("10.96.0.1", tcp); len(got) > 0 || !s.lives(open["10.1.1.4"]) || !s.lives(open["10.1.2.9"]) {
					t.Errorf("new connections reach %v", got)
				}
				s.noSessions("10.1.1.3:8080", "10.1.1.4:8080", "10.1.2.9:8080")
				if got := s.VPP.VPP.Rows(); (len(got) == 0) != (name == "gone") {
					t.Errorf("without connections VPP holds %v", got)
				}
				s.Render(3, served("a/a", "10.96.0.1", tcp, "10.1.1.3"))
				s.settled("again", "a/a")
				if got := s.reached("10.96.0.1", tcp); !slices.Equal(got, []string{"10.1.1.3"}) {
					t.Errorf("new connections reach %v", got)
				}
			})
		})
	}
}

// TestDrainsNotWithoutMemory: while VPP's memory is low, an endpoint that leaves the slices loses
// its entry, and one that drains already keeps it.
func TestDrainsNotWithoutMemory(t *testing.T) {
	drainStory(t, tcp, func(s scene, open map[string]connection) {
		s.Memory(2, 50, "a/a")
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4"))
		s.settled("enough memory", "a/a")
		if !s.lives(open["10.1.2.9"]) || s.Health().GetReason() != "" {
			t.Errorf("with enough memory an endpoint does not drain: %v", s.Health())
		}
		s.Memory(3, 14, "a/a")
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4"))
		s.Render(3, served("a/a", "10.96.0.1", tcp, "10.1.1.3"))
		s.settled("low memory", "a/a")
		if !s.lives(open["10.1.2.9"]) || s.lives(open["10.1.1.4"]) || !strings.Contains(s.Health().GetReason(), "VPP's memory is nearly used up") {
			t.Errorf("with low memory an endpoint drains, or one has ended: %v", s.Health())
		}
		s.Free = 50
		s.Run(2 * time.Second)
		s.Render(4, served("a/a", "10.96.0.1", tcp, "10.1.1.4"))
		s.settled("memory again", "a/a")
		if row := s.VPP.VPP.Rows()[0]; !strings.Contains(row, "10.1.1.3:8080") || s.Health().GetReason() != "" {
			t.Errorf("with memory again an endpoint does not drain: %s, %v", row, s.Health())
		}
	})
}

// TestRowsDoNotGrowWithoutMemory: where VPP's memory is critical, a row has as many endpoints as
// before, the service says so, and gets the others when there is memory again.
func TestRowsDoNotGrowWithoutMemory(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Memory(1, 50, "a/a")
		s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4"))
		s.settled("enough memory", "a/a")
		s.Memory(2, 7, "a/a")
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.2", "10.1.1.4", "10.1.2.9"))
		if got := s.reached("10.96.0.1", tcp); len(got) != 2 || !slices.Contains(got, "10.1.1.4") {
			t.Errorf("with critical memory connections reach %v", got)
		}
		if ack := s.Ack("a/a"); ack.GetState() != messages.RenderState_RENDER_FAILED || !strings.Contains(ack.GetError(), "it has 2 of 3 endpoints") || !s.Health().GetOk() {
			t.Errorf("acknowledged %v, %v", ack, s.Health())
		}
		s.Free = 14
		s.Run(2 * time.Second)
		s.settled("memory again", "a/a")
		if got := s.reached("10.96.0.1", tcp); len(got) != 3 {
			t.Errorf("with memory again connections reach %v", got)
		}
	})
}

// TestDrainLimit: an endpoint that has left the slices goes when its time is over.
func TestDrainLimit(t *testing.T) {
	limited := testConfig
	limited.DrainLimit = time.Hour
	withConfig(t, limited, []string{"a/a"}, func(s scene) {
		s.Keeps = true
		s.Begin(1, "a/a")
		s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4"))
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.3"))
		has := func() bool { return strings.Contains(s.VPP.VPP.Rows()[0], "10.1.1.4:8080") }
		passes := func(d time.Duration) {
			s.Tell(&sessions.Counted{Generation: 1})
			s.Run(d)
			s.Tell(&sessions.Counted{Generation: 1})
		}
		if passes(59 * time.Minute); !has() {
			t.Error("it has gone early")
		}
		if passes(time.Minute); has() {
			t.Error("its time is over, and it is still there")
		}
	})
}

// TestSharedEndpoint: a removal from one service does not end the connections of another one.
// Removed are an endpoint, with TCP or UDP, or the service as a whole.
func TestSharedEndpoint(t *testing.T) {
	for name, leaves := range map[string]*messages.ServiceView{
		"one of several":        served("b/b", "10.96.0.2", tcp, "10.1.1.3"),
		"one of several of UDP": served("b/b", "10.96.0.2", udp, "10.1.1.3"),
		"all":                   served("b/b", "10.96.0.2", tcp),
		"the service":           nil,
		"the service of UDP":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			drainStory(t, tcp, func(s scene, open map[string]connection) {
				protocol := tcp
				if strings.Contains(name, "UDP") {
					protocol = udp
				}
				s.Render(2, served("b/b", "10.96.0.2", protocol, "10.1.1.3", "10.1.1.4"))
				s.settled("it has the endpoint", "a/a", "b/b")
				if leaves == nil {
					s.Tell(&messages.Render{Key: "b/b", Generation: 3})
				} else {
					s.Render(3, leaves)
				}
				if !s.lives(open["10.1.1.4"]) {
					t.Error("the connection of the other service has ended")
				}
				if got := s.reached("10.96.0.2", protocol); slices.Contains(got, "10.1.1.4") {
					t.Errorf("new connections reach %v", got)
				}
				s.noSessions("10.1.1.3:8080", "10.1.1.4:8080")
				if !s.lives(open["10.1.1.4"]) {
					t.Error("a connection that the other service got after sessions were counted has ended")
				}
				early := s.counts(0, "10.1.1.4:8080")
				s.VPP.Hang() // the first change is on its way when the others arrive
				s.Render(4, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4", "10.1.2.9", "10.1.2.8"))
				s.Render(5, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.2.9"))
				s.Tell(early)
				s.VPP.Resume()
				s.Run(time.Millisecond)
				s.Tell(early)
				if !s.lives(open["10.1.1.4"]) {
					t.Error("it has ended when the endpoint left the other service, before sessions were counted again")
				}
				s.noSessions("10.1.1.3:8080", "10.1.1.4:8080")
				for _, row := range s.VPP.VPP.Rows() {
					if strings.Contains(row, "10.1.1.4:8080") {
						t.Errorf("without sessions VPP holds %s", row)
					}
				}
				if state := s.State("b/b"); leaves == nil && state != rendertest.Retired {
					t.Errorf("the service is %v", state)
				}
			})
		})
	}
}

// TestSharedEndpointAfterTheLimit: when the limit is over, an entry through which no client is
// connected still does not end the connections of the other service.
func TestSharedEndpointAfterTheLimit(t *testing.T) {
	limited := testConfig
	limited.DrainLimit = time.Minute
	withConfig(t, limited, []string{"a/a", "b/b"}, func(s scene) {
		s.Keeps = true
		s.Begin(1, "a/a", "b/b")
		s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.4"))
		s.Render(1, served("b/b", "10.96.0.2", tcp, "10.1.1.3", "10.1.1.4"))
		open := s.connect("10.96.0.1", tcp, "10.1.1.4")
		s.Render(2, served("b/b", "10.96.0.2", tcp, "10.1.1.3"))
		for range 3 {
			s.counted(1, "10.1.1.4:8080")
			s.Run(time.Minute)
		}
		if !s.lives(open["10.1.1.4"]) {
			t.Error("the connection of the other service has ended")
		}
		s.noSessions("10.1.1.4:8080")
		if row := s.VPP.VPP.Rows()[1]; strings.Contains(row, "10.1.1.4:8080") {
			t.Errorf("without sessions VPP holds %s", row)
		}
	})
}

// restarted restarts the renderer with these services.
func (s scene) restarted(generation uint64, services ...string) {
	s.Kill()
	s.Connected()
	s.Found(generation)
	s.Begin(generation, services...)
}

// TestSharedEndpointLeavesWhileAway: the row of a deleted service keeps an endpoint for the
// connections of another service. While VPP is away, the endpoint leaves the other service too.
// Then the first row must stay until the endpoint drains in the second, whether or not sessions
// were counted.
func TestSharedEndpointLeavesWhileAway(t *testing.T) {
	for name, counted := range map[string]bool{"sessions counted": true, "not counted": false} {
		t.Run(name, func(t *testing.T) {
			drainStory(t, tcp, func(s scene, open map[string]connection) {
				s.Render(2, served("b/b", "10.96.0.2", tcp, "10.1.1.3", "10.1.1.4"))
				s.Tell(&messages.Render{Key: "b/b", Generation: 3})
				if counted {
					counts := s.counts(1, "10.1.1.4:8080")
					counts.Live[netip.MustParseAddrPort("10.1.1.3:8080")] = nil
					s.Tell(counts)
				}
				s.VPP.Disconnect("connection lost")
				s.Connected()
				s.Render(4, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.2.9"))
				s.Reconnect(2)
				s.settled("again", "a/a")
				if !s.lives(open["10.1.1.4"]) {
					t.Error("the connection has ended")
				}
				s.noSessions("10.1.1.3:8080", "10.1.1.4:8080")
				for _, row := range s.VPP.VPP.Rows() {
					if strings.Contains(row, "10.1.1.4:8080") {
						t.Errorf("without sessions VPP holds %s", row)
					}
				}
			})
		})
	}
}

// TestSharedEndpointLeavesBothRows: an endpoint leaves one service while another one that has it is
// deleted. The deletion of the second row does not end the connections of the first one.
func TestSharedEndpointLeavesBothRows(t *testing.T) {
	for name, meanwhile := range map[string]struct{ begins, ends func(s scene) }{
		"while VPP hangs": {func(s scene) { s.VPP.Hang() }, func(s scene) { s.VPP.Resume(); s.Run(time.Second) }},
		"while VPP is away": {
			func(s scene) { s.VPP.Disconnect("connection lost"); s.Connected() },
			func(s scene) { s.Reconnect(2) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			drainStory(t, tcp, func(s scene, open map[string]connection) {
				s.Render(2, served("b/b", "10.96.0.2", tcp, "10.1.1.4"))
				s.Render(3, served("c/c", "10.96.0.3", tcp, "10.1.1.3"))
				meanwhile.begins(s)
				s.Tell(&messages.Render{Key: "c/c", Generation: 4}) // VPP works on it
				s.Render(4, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.2.9"))
				s.Tell(&messages.Render{Key: "b/b", Generation: 4})
				meanwhile.ends(s)
				s.settled("again", "a/a")
				if !s.lives(open["10.1.1.4"]) {
					t.Error("the connection has ended")
				}
			})
		})
	}
}

// TestInSyncWhileADrainedEndpointLeaves: a service has what it wants while VPP deletes the entry of
// an endpoint that has drained.
func TestInSyncWhileADrainedEndpointLeaves(t *testing.T) {
	drainStory(t, tcp, func(s scene, _ map[string]connection) {
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.2.9"))
		s.settled("it drains", "a/a")
		s.VPP.Hang()
		writes := s.writes(func() {
			s.noSessions("10.1.1.4:8080")
			s.settled("VPP works on it", "a/a")
			s.VPP.Resume()
			s.Run(time.Second)
		})
		s.settled("it is gone", "a/a")
		if writes == 0 || strings.Contains(fmt.Sprint(s.VPP.VPP.Rows()), "10.1.1.4:8080") {
			t.Errorf("%d writes: VPP holds %q", writes, s.VPP.VPP.Rows())
		}
	})
}

// TestSharedEndpointAfterRestart: a renderer that starts leaves an endpoint in its row until it
// knows whether other services have it, whichever service renders first.
func TestSharedEndpointAfterRestart(t *testing.T) {
	sticky := served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.2.9")
	sticky.Frontends[0].AffinitySeconds = 60
	for name, first := range map[string]*messages.ServiceView{
		"affinity": sticky,
		"UDP":      served("a/a", "10.96.0.1", udp, "10.1.1.3", "10.1.2.9"),
	} {
		t.Run(name, func(t *testing.T) {
			withRenderer(t, func(s scene) {
				s.Keeps = true
				before := proto.CloneOf(first)
				before.Frontends[0].Backends = append(before.Frontends[0].Backends, &messages.Backend{Address: "10.1.1.4", Port: 8080, Local: true})
				other := served("b/b", "10.96.0.2", tcp, "10.1.1.4")
				s.Begin(1, "a/a", "b/b")
				s.Render(1, before)
				s.Render(1, other)
				s.Render(2, first)
				open := s.connect("10.96.0.2", tcp, "10.1.1.4")
				writes := s.writes(func() {
					s.restarted(2, "a/a", "b/b")
					s.Render(2, first)
					s.Run(3 * time.Second)
					s.Render(1, other)
				})
				s.settled("both have rendered", "a/a", "b/b")
				if writes != 0 || !s.lives(open["10.1.1.4"]) {
					t.Errorf("%d writes: VPP holds %q", writes, s.VPP.VPP.Rows())
				}
			})
		})
	}
}

// TestLeavesAllRows: an endpoint that was removed while no renderer ran leaves every row of its
// service when all services have rendered. The rows do not keep it for each other.
func TestLeavesAllRows(t *testing.T) {
	for name, protocol := range map[string]messages.Protocol{"affinity": tcp, "UDP": udp} {
		t.Run(name, func(t *testing.T) {
			withRenderer(t, func(s scene) {
				s.Keeps = true
				view := func(endpoints ...string) *messages.ServiceView {
					v := served("a/a", "10.96.0.1", protocol, endpoints...)
					v.Frontends = append(v.Frontends, served("a/a", "10.96.0.2", protocol, endpoints...).Frontends...)
					for _, f := range v.Frontends {
						f.AffinitySeconds = map[messages.Protocol]uint32{tcp: 60}[protocol]
					}
					return v
				}
				s.Begin(1, "a/a", "b/b")
				s.Render(1, view("10.1.1.3", "10.1.1.4"))
				s.Render(1, served("b/b", "10.96.0.3", tcp, "10.1.2.9"))
				s.restarted(2, "a/a", "b/b")
				s.Render(2, view("10.1.1.3"))
				s.Run(3 * time.Second)
				s.Render(1, served("b/b", "10.96.0.3", tcp, "10.1.2.9"))
				s.settled("both have rendered", "a/a", "b/b")
				for _, row := range s.VPP.VPP.Rows() {
					if strings.Contains(row, "10.1.1.4:8080") {
						t.Errorf("VPP holds %s", row)
					}
				}
			})
		})
	}
}

// TestSharedEndpointOfADeletedService: a service goes whose endpoint another one has, at once or
// while no renderer runs. New connections do not reach the endpoint through it, and it is not
// acknowledged before that is so.
func TestSharedEndpointOfADeletedService(t *testing.T) {
	kept := served("a/a", "10.96.0.1", tcp, "10.1.1.3")
	for name, goes := range map[string]func(s scene){
		"at once": func(s scene) {
			s.VPP.Hang()
			s.Tell(&messages.Render{Key: "b/b", Generation: 2})
			if s.State("b/b") == rendertest.Retired {
				t.Error("it is acknowledged before VPP has answered")
			}
			s.VPP.Resume()
			s.Run(time.Millisecond)
			if s.State("b/b") != rendertest.Retired {
				t.Errorf("acknowledged %v", s.Ack("b/b"))
			}
		},
		"while no renderer runs": func(s scene) { s.restarted(2, "a/a"); s.Render(1, kept) },
	} {
		t.Run(name, func(t *testing.T) {
			withRenderer(t, func(s scene) {
				s.Keeps = true
				s.Begin(1, "a/a", "b/b")
				s.Render(1, kept)
				s.Render(1, served("b/b", "10.96.0.2", tcp, "10.1.1.3"))
				goes(s)
				if got := s.reached("10.96.0.2", tcp); len(got) > 0 {
					t.Errorf("new connections reach %v", got)
				}
			})
		})
	}
}

// TestUDPMoves: a UDP flow to an endpoint that does not serve any more gets another one at once. So
// do the flows of a deleted service.
func TestUDPMoves(t *testing.T) {
	drainStory(t, udp, func(s scene, open map[string]connection) {
		s.Render(2, served("a/a", "10.96.0.1", udp, "10.1.1.3", "10.1.1.4-"))
		s.settled("one serves, another one has gone", "a/a")
		if s.lives(open["10.1.2.9"]) || !s.lives(open["10.1.1.4"]) {
			t.Error("the wrong flow has moved")
		}
		s.Tell(&messages.Render{Key: "a/a", Generation: 3})
		s.expect("the service is deleted")
	})
}

// TestDrainingIsReported: to the actor that looks for sessions, and to operators.
func TestDrainingIsReported(t *testing.T) {
	drainStory(t, tcp, func(s scene, _ map[string]connection) {
		s.Render(2, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4-"))
		list := s.Draining
		last := list[len(list)-1]
		if want := []netip.AddrPort{netip.MustParseAddrPort("10.1.1.4:8080"), netip.MustParseAddrPort("10.1.2.9:8080")}; !slices.Equal(last.Draining, want) {
			t.Fatalf("reported %v", list)
		}
		counts := s.counts(3, "10.1.1.4:8080", "10.1.2.9:8080")
		for _, live := range counts.Live {
			live[rule.Key{Addr: netip.MustParseAddr("10.96.0.9"), Port: 80, Proto: rule.TCP}] = 3
		}
		s.Tell(counts)
		kept := map[string]string{}
		for _, r := range s.Ask(&render.RowsQuery{Service: "a/a"}).(*render.RowsPage).Held {
			for _, b := range r.GetDraining() {
				kept[b.GetAddress()] = b.GetKept()
			}
		}
		want := map[string]string{"10.1.1.4:8080": "", "10.1.2.9:8080": "3 connections of another service"}
		if d := cmp.Diff(want, kept); d != "" {
			t.Errorf("kept (-want +got)\n%s", d)
		}
		for i, lost := range []uint64{0, last.Generation - 1, last.Generation + 1} {
			s.Tell(&sessions.Counted{Generation: lost})
			if again := s.Draining; len(again) != len(list)+i+1 || again[len(again)-1].Generation != last.Generation {
				t.Errorf("another list is known, %d: %v", lost, again)
			}
		}
	})
}

// TestWhoServesIsReported: the sessions actor learns which draining endpoints do not serve any
// more, also when nothing changes in VPP, which rows have affinity, and where VPP sees half of each
// connection.
func TestWhoServesIsReported(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Keeps = true
		s.Begin(1, "a/a")
		view := func(serving bool) *messages.ServiceView {
			v := served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4-", "10.1.2.9-")
			v.Frontends[0].Draining[1].Serving = serving
			sticky := served("a/a", "10.96.0.2", udp, "10.1.1.3")
			sticky.Frontends[0].AffinitySeconds = 60
			v.Frontends = append(v.Frontends, sticky.Frontends...)
			return v
		}
		s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.3", "10.1.1.4", "10.1.2.9"))
		row, sticky := rule.Key{Addr: netip.MustParseAddr("10.96.0.1"), Port: 80, Proto: rule.TCP}, rule.Key{Addr: netip.MustParseAddr("10.96.0.2"), Port: 80, Proto: rule.UDP}
		wish := func(gone ...string) *sessions.Wish {
			w := &sessions.Wish{Gone: map[netip.AddrPort]map[rule.Key]bool{}, Sticky: map[rule.Key]time.Duration{sticky: time.Minute}, Backends: []netip.AddrPort{netip.MustParseAddrPort("10.1.1.3:8080")}}
			for _, at := range gone {
				w.Gone[netip.MustParseAddrPort(at)] = map[rule.Key]bool{row: true}
			}
			return w
		}
		for i, step := range []struct {
			serving bool
			want    *sessions.Wish
		}{
			{true, wish("10.1.1.4:8080")},
			{false, wish("10.1.1.4:8080", "10.1.2.9:8080")},
			{true, wish("10.1.1.4:8080")},
		} {
			s.Render(uint64(2+i), view(step.serving))
			last := s.Draining[len(s.Draining)-1]
			if want := step.want; !reflect.DeepEqual([]any{want.Gone, want.Sticky, want.Backends}, []any{last.Gone, last.Sticky, last.Backends}) {
				t.Errorf("step %d: want %v, got %v", i, want, last)
			}
		}
	})
}

// TestLongListsRest: the renderer does not send a long list of draining backends, or of rows with
// affinity, with every change, and the last list is complete.
func TestLongListsRest(t *testing.T) {
	const services = 40
	keys := make([]string, services)
	for i := range keys {
		keys[i] = fmt.Sprintf("a/%02d", i)
	}
	for name, c := range map[string]struct {
		endpoints int // that leave
		sticky    int // rows of a service
	}{"draining": {endpoints: 10}, "affinity": {sticky: 10}} {
		withConfig(t, testConfig, keys, func(s scene) {
			s.Keeps = true
			s.Begin(1, keys...)
			render := func(generation uint64, endpoints int) {
				for i, key := range keys {
					list := []string{"10.1.1.3"}
					for k := range endpoints {
						list = append(list, fmt.Sprintf("10.1.%d.%d", 10+i, 1+k))
					}
					view := served(key, fmt.Sprint("10.96.0.", 1+i), tcp, list...)
					for p := range c.sticky {
						f := served(key, fmt.Sprint("10.96.0.", 1+i), udp, list...).Frontends[0]
						f.Port, f.AffinitySeconds = uint32(1000+p), uint32(generation)
						view.Frontends = append(view.Frontends, f)
					}
					s.Render(generation, view)
				}
			}
			render(1, c.endpoints)
			before := len(s.Draining)
			render(2, 0)
			if n := len(s.Draining) - before; n < 2 || n > 15 {
				t.Errorf("%s: %d lists after 40 changes", name, n)
			}
			s.Run(time.Second)
			last := s.Draining[len(s.Draining)-1]
			if n := len(last.Draining) + len(last.Sticky); n != 10*services {
				t.Errorf("%s: the last list has %d backends and rows", name, n)
			}
		})
	}
}

// TestDrainedLeaveAFewAtATime: a change that comes when the backends of many rows have drained
// waits for a few of these rows only.
func TestDrainedLeaveAFewAtATime(t *testing.T) {
	const rows, few = 200, 64
	services, gone := []string{"b/new"}, make([]string, rows)
	for i := range rows {
		services, gone[i] = append(services, fmt.Sprintf("a/%03d", i)), fmt.Sprintf("10.1.%d.9:8080", i)
	}
	withConfig(t, testConfig, services, func(s scene) {
		s.Keeps = true
		s.Begin(1, services...)
		s.Render(1, served("b/new", "10.96.1.1", tcp, "10.1.1.3"))
		for generation := range uint64(2) {
			for i, key := range services[1:] {
				endpoints := []string{"10.1.1.3", fmt.Sprintf("10.1.%d.9", i)}
				s.Render(1+generation, served(key, fmt.Sprint("10.96.0.", 1+i), tcp, endpoints[:2-generation]...))
			}
		}
		draining := func() (n int) {
			for _, row := range s.VPP.VPP.Rows() {
				n += len(probe.Draining(row))
			}
			return n
		}
		if n := draining(); n != rows {
			t.Fatalf("%d backends drain", n)
		}
		s.Run(time.Second) // the last list has been sent
		s.VPP.Hang()
		s.noSessions(gone...)
		s.Render(2, served("b/new", "10.96.1.1", tcp, "10.1.1.3", "10.1.1.4"))
		s.VPP.Resume()
		found, err := s.Sim.RunUntil(func() bool { return s.State("b/new") == rendertest.InSync && s.Ack("b/new").GetGeneration() == 2 }, time.Minute)
		if n := draining(); !found || err != nil || n < rows-2*few || n > rows-few {
			t.Errorf("VPP has the change: %t, %v; %d backends drain", found, err, n)
		}
		if s.Run(time.Second); draining() > 0 {
			t.Errorf("%d backends drain without a session", draining())
		}
	})
}

// TestLeftoverWaitsForTheInterfaces: a service has gone while the renderer was away. Another one has
// its endpoint. The interfaces are known last, when every service has rendered. The row leaves.
func TestLeftoverWaitsForTheInterfaces(t *testing.T) {
	withServices(t, []string{"a/a", "b/b"}, func(s scene) {
		s.Begin(1, "a/a", "b/b")
		s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.3"))
		s.Render(1, served("b/b", "10.96.0.2", tcp, "10.1.1.3"))
		s.Kill()
		s.Connected()
		s.Begin(2, "b/b")
		s.Render(1, served("b/b", "10.96.0.2", tcp, "10.1.1.3"))
		s.Found(2)
		s.Run(time.Minute)
		s.expect("in the end", "10.96.0.2:80/6")
	})
}
