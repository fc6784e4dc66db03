package nat44_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render/nat44"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	natvpp "github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

var errNo = errors.New("no")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is the nat44 renderer on a stage.
type scene struct{ *rendertest.Stage }

var testConfig = natvpp.Config{Node: probe.Node, Pads: true, TwiceNAT: netip.MustParseAddr("10.1.1.254")}

// withRenderer plays with the services "a/a" and "b/b".
func withRenderer(t *testing.T, play func(s scene)) {
	t.Helper()
	withConfig(t, testConfig, []string{"a/a", "b/b"}, play)
}

func withServices(t *testing.T, services []string, play func(s scene)) {
	t.Helper()
	withConfig(t, testConfig, services, play)
}

func withConfig(t *testing.T, config natvpp.Config, services []string, play func(s scene)) {
	t.Helper()
	rendertest.Play(t, rendertest.Adapted(nat44.New, config, rendertest.Forwarding), services, func(s *rendertest.Stage) { play(scene{s}) })
}

// guarded is a service whose frontends let in the clients from some networks only.
func guarded(key string, sources []string, addresses ...string) *messages.ServiceView {
	v := rendertest.Forwarding(key, int64(len(key)), addresses...)
	for _, f := range v.Frontends {
		f.AllowSources = sources
	}
	return v
}

// elsewhere is a service with policy Local and no endpoint here: clients outside of the node are
// dropped, clients of this node are served.
func elsewhere(key, address string) *messages.ServiceView {
	v := rendertest.Forwarding(key, int64(len(key)), address, address)
	v.Frontends[0].From, v.Frontends[1].From = messages.ClientClass_FROM_LOCAL, messages.ClientClass_FROM_REMOTE
	v.Frontends[1].Action, v.Frontends[1].Backends = messages.Action_ACTION_DROP, nil
	return v
}

// lists are the agent's access lists in VPP, with their interfaces.
func (s scene) lists() string {
	var lines []string
	for line := range strings.Lines(s.VPP.VPP.State()) {
		if line = strings.TrimSpace(line); strings.Contains(line, `"troupe/deny/`) || strings.HasPrefix(line, "on ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// reaches sends a packet to port 80 and says whether it was translated.
func (s scene) reaches(in, src, vip string) bool { return translated(s.VPP.VPP, in, src, vip) }

func translated(vpp *simulator.VPP, in, src, vip string) bool {
	to := netip.AddrPortFrom(netip.MustParseAddr(vip), 80)
	v := vpp.Send(simulator.Packet{In: in, Src: netip.AddrPortFrom(netip.MustParseAddr(src), 12345), Dst: to, Proto: simulator.ProtoTCP})
	return v.Action != simulator.Dropped && v.Dst.IsValid() && v.Dst != to
}

// vips are the frontends of the agent's rows in VPP.
func (s scene) vips() (vips []string) {
	for _, row := range probe.Rows(s.VPP.VPP) {
		vip, _, _ := strings.Cut(row, " ")
		vips = append(vips, vip)
	}
	return vips
}

// expect fails the test if the agent's rows in VPP have other frontends, "ip:port/protocol".
func (s scene) expect(when string, vips ...string) {
	s.Helper()
	if got := s.vips(); !slices.Equal(got, vips) {
		s.Errorf("%s: VPP holds %q, want %q", when, got, vips)
	}
}

// settled fails the test where the services are not in sync or the renderer is not.
func (s scene) settled(when string, keys ...string) {
	s.Helper()
	var states []string
	for _, key := range keys {
		if state := s.State(key); state != rendertest.InSync {
			states = append(states, fmt.Sprint(key, " ", s.Ack(key)))
		}
	}
	if len(states) > 0 || !s.Health().GetOk() {
		s.Errorf("%s: acknowledged %q, %v", when, states, s.Health())
	}
}

// writes runs something and returns how often VPP was written to meanwhile.
func (s scene) writes(what func()) int {
	before := s.Writes()
	what()
	return s.Writes() - before
}

// noSessions says that VPP has no session to these endpoints.
func (s scene) noSessions(endpoints ...string) {
	s.counted(0, endpoints...)
}

// counted says that VPP has sessions to these endpoints through a row of service a/a, and no
// others.
func (s scene) counted(through int, endpoints ...string) {
	s.Tell(s.counts(through, endpoints...))
}

// counts is such a message, about the latest list.
func (s scene) counts(through int, endpoints ...string) *sessions.Counted {
	m := &sessions.Counted{Generation: s.Draining[len(s.Draining)-1].Generation, Live: map[netip.AddrPort]sessions.Live{}}
	for _, e := range endpoints {
		live := sessions.Live{}
		if m.Live[netip.MustParseAddrPort(e)] = live; through > 0 {
			live[rule.Key{Addr: netip.MustParseAddr("10.96.0.1"), Port: 80, Proto: rule.TCP}] = through
		}
	}
	return m
}
