package sessions

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// serveTCP adds a row of TCP at 10.96.0.2:80 with two ports of pod3.
func (s *stage) serveTCP() {
	s.Helper()
	row := &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, Flags: nat_types.NAT_IS_OUT2IN_ONLY, Protocol: simulator.ProtoTCP, Tag: "tcp", ExternalAddr: [4]byte{10, 96, 0, 2}, ExternalPort: 80,
	}
	for port := range uint16(2) {
		row.Locals = append(row.Locals, nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, 3}, Port: 8080 + port, Probability: 7})
	}
	s.exec(row)
}

// request sends the first packet of n connections from pod2, and answers from pod3 with flags; 0 =
// without an answer.
func (s *stage) request(from, n int, answer simulator.TCPFlags) {
	s.Helper()
	for i := range n {
		v := s.vpp.VPP.Send(simulator.Packet{
			In: "pod2", Proto: simulator.ProtoTCP, Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), uint16(1024+from+i)), Dst: netip.MustParseAddrPort("10.96.0.2:80"),
		})
		if v.Action != simulator.Delivered {
			s.Fatalf("connection %d: %s", i, v)
		}
		if answer == 0 {
			continue
		}
		if v := s.vpp.VPP.Send(simulator.Packet{In: "pod3", Proto: simulator.ProtoTCP, Src: v.Dst, Dst: v.Src, Flags: answer}); v.Action != simulator.Delivered {
			s.Fatalf("answer %d: %s", i, v)
		}
	}
}

// warning is the reason that the healer was told last.
func (s *stage) warning() string {
	return probe.Latest[*messages.Health](s.Stage, address.Healer).GetReason()
}

// TestLostAnswersAreSaid: services whose endpoints do not answer are a warning within 10 s, which
// ends when they answer. The node stays ready.
func TestLostAnswersAreSaid(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		s.serveTCP()
		s.request(0, 24, 0)
		s.Run(10 * time.Second)
		const want = "services are programmed, but answers do not come back: "
		h := probe.Latest[*messages.Health](s.Stage, address.Healer)
		if !h.GetOk() || !strings.HasPrefix(h.GetReason(), want) || !strings.HasPrefix(o.lost, want) {
			t.Errorf("health %v, alarm %q", h, o.lost)
		}
		n := 0
		for _, silent := range o.silent {
			n += silent.Unanswered
		}
		if n != 24 || len(o.silent) != 2 || !strings.Contains(s.recorded(), "alarm: answers do not come back "+want) {
			t.Errorf("silent %v; recorded:\n%s", o.silent, s.recorded())
		}
		s.request(100, 60, simulator.SYN|simulator.ACK)
		s.request(100, 60, simulator.ACK)
		s.Run(time.Minute)
		if s.warning() != "" || o.lost != "" || len(o.silent) != 0 || !strings.Contains(s.recorded(), "alarm is over") {
			t.Errorf("after answers: %q, %q, %v", s.warning(), o.lost, o.silent)
		}
	})
}

// TestRefusedAndIdleServicesAreNoAlarm: a refusal is an answer. While there are no new connections,
// VPP is not asked.
func TestRefusedAndIdleServicesAreNoAlarm(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		s.serveTCP()
		s.request(0, 50, simulator.RST|simulator.ACK)
		s.Run(10 * time.Second)
		s.dial(0, 20) // UDP
		s.Run(time.Minute)
		for _, h := range probe.All[*messages.Health](s.Stage, address.Healer) {
			if !h.GetOk() || h.GetReason() != "" {
				t.Errorf("health %v", h)
			}
		}
		dumps := 0
		s.vpp.Veto = func(request api.Message) error {
			if strings.HasSuffix(request.GetMessageName(), "_dump") {
				dumps++
			}
			return nil
		}
		if s.Run(10 * time.Minute); dumps != 0 || o.lost != "" {
			t.Errorf("%d dumps of an idle table, alarm %q", dumps, o.lost)
		}
	})
}

// TestLostAnswersEndWithTheConnection: what was wrong in a VPP that has gone is forgotten.
func TestLostAnswersEndWithTheConnection(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		s.serveTCP()
		s.request(0, 24, 0)
		s.Run(10 * time.Second)
		if o.lost == "" {
			t.Fatal("no alarm")
		}
		s.vpp.Disconnect("gone")
		s.connection()
		if o.lost != "" || s.warning() != "" {
			t.Errorf("alarm %q, warning %q", o.lost, s.warning())
		}
	})
}

// denials are counters that grow by packets that access lists deny where they leave.
type denials struct{}

func (denials) Read(context.Context) (sessions.Signs, error) {
	return sessions.Signs{DeniedOut: 7}, nil
}

// TestDenyingListsAreNamed: lost answers name the access lists of others that may deny, and no
// other ones.
func TestDenyingListsAreNamed(t *testing.T) {
	keeping(t, 1000, sessions.Config{}, func(s *stage, o *tally) {
		s.config.Signs = denials{}
		for i, tag := range []string{"policy", "troupe/x"} {
			s.exec(&acl.ACLAddReplace{ACLIndex: ^uint32(0), Tag: tag, R: []acl_types.ACLRule{{IsPermit: acl_types.ACL_ACTION_API_PERMIT}}, Count: 1})
			for _, pod := range []string{"pod2", "pod3"} {
				s.exec(&acl.ACLInterfaceAddDel{IsAdd: true, IsInput: i == 1, SwIfIndex: interface_types.InterfaceIndex(s.vpp.VPP.Interfaces()[pod]), ACLIndex: uint32(i)})
			}
		}
		s.serveTCP()
		s.request(0, 24, 0)
		s.Run(10 * time.Second)
		if want := "access lists in VPP deny packets, where packets leave at pod2 (policy), pod3 (policy)"; !strings.HasSuffix(o.lost, want) {
			t.Errorf("%q does not end with %q", o.lost, want)
		}
	})
}
