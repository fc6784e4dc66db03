package sessions

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// watching plays with a housekeeper on a VPP whose CNAT replaces the source of what enters from
// pod2 and leaves to pod3. NAT44 is not enabled.
func watching(t *testing.T, play func(s *stage, o *tally)) {
	t.Helper()
	s := &stage{Stage: probe.New(t)}
	s.vpp = s.VPP()
	o := &tally{vpp: s.vpp.VPP}
	config := &Config{CNAT: true, Stats: o, Observer: o, VPP: &commands{Caller: s.vpp, tally: o}}
	s.Start(address.Sessions, probe.Actors{address.Sessions: func() runtime.Behaviour { return New(config) }})
	s.exec(&cnat.CnatSetSnatAddresses{SnatIP4: [4]byte{10, 255, 0, 1}, SwIfIndex: ^interface_types.InterfaceIndex(0)})
	for _, pod := range []string{"pod2", "pod3"} {
		index := interface_types.InterfaceIndex(s.vpp.VPP.Interfaces()[pod])
		s.exec(&feature.FeatureEnableDisable{SwIfIndex: index, Enable: true, ArcName: "ip4-unicast", FeatureName: "cnat-input-ip4"})
		s.exec(&feature.FeatureEnableDisable{SwIfIndex: index, Enable: true, ArcName: "ip4-output", FeatureName: "cnat-output-ip4"})
	}
	s.connection()
	play(s, o)
}

// commands counts calls, and answers as a VPP without CNAT while the tally is broken.
type commands struct {
	link.Caller
	tally *tally
}

func (c *commands) Do(ctx context.Context, reqs []api.Message) ([]link.Result, error) {
	c.tally.calls++
	results, err := c.Caller.Do(ctx, reqs)
	if c.tally.broken != nil && err == nil {
		results[0].Reply = &vlib.CliInbandReply{Reply: c.tally.broken.Error()}
	}
	return results, err
}

// connect opens connections from pod2 to pod3 and returns how many of them VPP let pass. Each has a
// destination of its own: VPP uses a source port once, whatever the destination is.
func (s *stage) connect(proto uint8, from, n int) (served int) {
	for i := from; i < from+n; i++ {
		verdict := s.vpp.VPP.Send(simulator.Packet{
			In: "pod2", Proto: proto, Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), 1024),
			Dst: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.3"), uint16(1024+i)),
		})
		if verdict.Action == simulator.Delivered {
			served++
		}
	}
	return served
}

// TestSourcePortsOfCNAT: 90 percent of the source ports is an alarm, and so is the first connection
// that VPP refuses. The node stays ready, and the alarm ends with its cause. The table of NAT44 is
// not looked at.
func TestSourcePortsOfCNAT(t *testing.T) {
	watching(t, func(s *stage, o *tally) {
		health := func() *messages.Health { return probe.Latest[*messages.Health](s.Stage, address.Healer) }
		expect := func(alarm bool, usage sessions.CNAT, reason string) {
			t.Helper()
			if h := health(); !h.GetOk() || !strings.HasPrefix(h.GetReason(), reason) || (h.GetReason() == "") != (reason == "") {
				t.Errorf("health %v, want %q", h, reason)
			}
			if o.cnatAlarm != alarm || o.cnat != usage {
				t.Errorf("%+v, alarm %t; want %+v", o.cnat, o.cnatAlarm, usage)
			}
		}
		s.Run(2 * time.Second)
		expect(false, sessions.CNAT{}, "")
		open := func(from, to int) { // they expire after 30 s
			s.Run(40 * time.Second)
			if n := s.connect(simulator.ProtoUDP, from, to-from); n != to-from {
				t.Fatalf("%d of %d connections", n, to-from)
			}
			s.Run(20 * time.Second)
		}
		open(0, 14000)
		expect(false, sessions.CNAT{Sessions: 14000}, "")
		open(0, 15000)
		expect(true, sessions.CNAT{Sessions: 15000}, "CNAT has 15000 sessions, and a NAT address has 16383 source ports")
		s.Run(2 * time.Minute)
		expect(false, sessions.CNAT{}, "")
		if n := s.connect(simulator.ProtoUDP, 0, 17000); n != sessions.SourcePorts {
			t.Errorf("%d connections with %d source ports", n, sessions.SourcePorts)
		}
		if n := s.connect(simulator.ProtoTCP, 0, 10); n != 10 {
			t.Errorf("another protocol: %d connections", n)
		}
		s.Run(time.Minute)
		expect(true, sessions.CNAT{NoPort: 617}, "CNAT refuses connections: the 16383 source ports")
		s.Run(3 * time.Minute)
		expect(false, sessions.CNAT{NoPort: 617}, "")
		if text := s.recorded(); strings.Count(text, "alarm: ") != 2 || strings.Count(text, "alarm is over") != 2 || strings.Contains(text, "read") {
			t.Errorf("recorded:\n%s", text)
		}
		if o.looks != 0 {
			t.Errorf("%d looks at NAT44", o.looks)
		}
	})
}

// TestCNATAndTheLink: looks end with the connection, begin with the next one, and one that VPP
// cannot answer is a warning.
func TestCNATAndTheLink(t *testing.T) {
	watching(t, func(s *stage, o *tally) {
		s.Run(2 * time.Second)
		s.vpp.Disconnect("lost")
		s.connection()
		s.connect(simulator.ProtoTCP, 0, 10)
		if s.Run(5 * time.Second); o.cnat.Sessions != 0 {
			t.Errorf("read without a connection: %+v", o.cnat)
		}
		s.vpp.Connect()
		s.connection()
		if s.Run(2 * time.Second); o.cnat.Sessions != 10 {
			t.Errorf("%+v", o.cnat)
		}
		for range 10 { // one look in a minute, however often the connection was another one
			s.vpp.Disconnect("lost")
			s.connection()
			s.vpp.Connect()
			s.connection()
		}
		before := o.calls
		s.Run(10*time.Minute + 30*time.Second)
		if n := o.calls - before; n != 11 {
			t.Errorf("%d looks in ten minutes", n)
		}
	})
}

// TestCNATThatIsNotThere: the part says that it cannot count.
func TestCNATThatIsNotThere(t *testing.T) {
	watching(t, func(s *stage, o *tally) {
		o.broken = errors.New("unknown input `show cnat timestamp'")
		s.Run(5 * time.Minute)
		if h := probe.Latest[*messages.Health](s.Stage, address.Healer); !h.GetOk() || !strings.HasPrefix(h.GetReason(), "read CNAT sessions: answer not understood") {
			t.Errorf("health %v", h)
		}
		if text := s.recorded(); strings.Count(text, "cannot read CNAT sessions") != 1 {
			t.Errorf("recorded:\n%s", text)
		}
		o.broken = nil
		s.Run(2 * time.Minute)
		if h := probe.Latest[*messages.Health](s.Stage, address.Healer); h.GetReason() != "" {
			t.Errorf("health %v", h)
		}
	})
}
