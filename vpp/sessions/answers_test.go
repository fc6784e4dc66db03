package sessions

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestUnanswered: "packets, bytes, idle => without an answer", as VPP 25.10 shows sessions of
// clients that run Linux, unless the name says otherwise.
func TestUnanswered(t *testing.T) {
	for name, tt := range map[string]struct {
		packets, bytes uint64
		idle           int
		want           bool
	}{
		"an answer and 2000 bytes":           {10, 2538, 0, false},
		"one more acknowledgement":           {11, 2598, 0, false},
		"refused":                            {2, 100, 9, false},
		"refused, no timestamps":             {2, 92, 9, false},
		"refused, no options":                {2, 80, 9, false},
		"refused, macOS":                     {2, 104, 9, false},
		"refused three times, no options":    {6, 240, 9, false},
		"refused three times, Windows":       {6, 276, 9, false},
		"refused by an ICMP error":           {2, 148, 9, false},
		"no answer, the client gave up":      {1, 60, 2, true},
		"the first packet, a moment ago":     {1, 60, 1, false},
		"no answer to two":                   {2, 120, 2, true},
		"an answer, a moment ago":            {2, 120, 1, false},
		"no answer for four seconds":         {4, 240, 0, true},
		"no answer, no timestamps":           {4, 208, 0, true},
		"no answer, macOS":                   {4, 256, 0, true},
		"idle, after a probe":                {4, 224, 60, false},
		"idle, no timestamps":                {3, 144, 60, false},
		"idle and probed, no timestamps":     {6, 264, 60, false},
		"opened and closed without data":     {6, 328, 0, false},
		"half of a handshake of a port scan": {3, 44 + 44 + 40, 0, false},
		"a bypass that counts no bytes":      {1, 0, 9, false},
		"answers astray, refused by clients": {6, 180, 0, true}, // outside role only
	} {
		f := Flow{Protocol: protoTCP, Service: true, Packets: tt.packets, Bytes: tt.bytes, Idle: time.Duration(tt.idle) * time.Second}
		if got := f.Unanswered(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
		udp, direct := f, f
		udp.Protocol, direct.Service = protoUDP, false
		if udp.Unanswered() || direct.Unanswered() {
			t.Errorf("%s: of UDP or without a service", name)
		}
	}
}

// TestJudge: "client>endpoint=answered/unanswered => who is silent".
func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct{ flows, want string }{
		"nothing":                    {"", ""},
		"healthy":                    {"1>a=24/0 2>b=5/0", ""},
		"a few were lost on the way": {"1>a=24/2", ""},
		"two attempts":               {"1>a=0/2", ""},
		"all":                        {"1>a=0/24", "24 of 24 connections to 10.1.1.1:80"},
		"one endpoint of two":        {"1>a=12/0 1>b=0/12", "12 of 12 connections to 10.1.1.2:80"},
		"most of an endpoint":        {"1>a=2/5", "5 of 7 connections to 10.1.1.1:80"},
		"one client":                 {"1>a=9/0 1>b=9/0 2>a=0/3 2>b=0/2", "5 of 5 connections of 198.18.0.2"},
		"a client of a lost endpoint, which another one serves": {"1>a=0/9 1>b=3/0", "9 of 9 connections to 10.1.1.1:80"},
		"two endpoints":                    {"1>b=0/3 1>a=0/3", "3 of 3 connections to 10.1.1.1:80, 3 of 3 connections to 10.1.1.2:80"},
		"a client at one endpoint":         {"1>a=5/0 2>a=0/4 2>b=4/0", "4 of 4 connections of 198.18.0.2 to 10.1.1.1:80"},
		"most of a client at one endpoint": {"1>a=5/0 2>a=1/4 2>b=4/0", ""},
		"the endpoint explains a client":   {"1>a=0/5 2>a=0/4 2>b=4/0", "9 of 9 connections to 10.1.1.1:80"},
		"denied: may be a policy":          {"1>a=5/0 2>a=0/4 2>b=4/0", ""},
	} {
		var flows []Flow
		for _, text := range strings.Fields(tt.flows) {
			var client, answered, unanswered int
			var endpoint byte
			if _, err := fmt.Sscanf(text, "%d>%c=%d/%d", &client, &endpoint, &answered, &unanswered); err != nil {
				t.Fatal(text, err)
			}
			f := Flow{
				Protocol: protoTCP, Service: true, Backend: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 1, endpoint - 'a' + 1}), 80),
				Client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, 0, byte(client)}), 4000),
			}
			f.Packets, f.Bytes = 10, 2538
			flows = append(flows, slices.Repeat([]Flow{f}, answered)...)
			f.Packets, f.Bytes = 4, 240
			flows = append(flows, slices.Repeat([]Flow{f}, unanswered)...)
		}
		var got []string
		for _, s := range Judge(flows, strings.HasPrefix(name, "denied")) {
			got = append(got, s.String())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestDecideAnswers: the alarm names who is silent, and the counters that grow name the cause.
func TestDecideAnswers(t *testing.T) {
	connection := Flow{Protocol: protoTCP, Service: true, Backend: netip.MustParseAddrPort("10.1.1.1:80"), Client: netip.MustParseAddrPort("198.18.0.1:4000"), Packets: 4, Bytes: 240}
	lost := slices.Repeat([]Flow{connection}, 24)
	connection.Bytes = 120
	astray := slices.Repeat([]Flow{connection}, 24)
	connection.Bytes = 240
	paired := slices.Repeat([]Flow{connection}, 4)
	connection.Client = netip.MustParseAddrPort("198.18.0.2:4000")
	connection.Bytes = 253
	paired = append(paired, slices.Repeat([]Flow{connection}, 5)...)
	connection.Client, connection.Backend = paired[0].Client, netip.MustParseAddrPort("10.1.1.2:80")
	paired = append(paired, connection)
	const said = "services are programmed, but answers do not come back: 24 of 24 connections to 10.1.1.1:80: "
	for name, tt := range map[string]struct {
		flows         []Flow
		before, after *Signs
		want          string
	}{
		"healthy":                          {nil, &Signs{}, &Signs{}, ""},
		"old strangers":                    {nil, &Signs{Strangers: 7}, &Signs{Strangers: 7}, ""},
		"strangers, all answered":          {nil, &Signs{}, &Signs{Strangers: 136}, ""},
		"lost":                             {lost, &Signs{Strangers: 7}, &Signs{Strangers: 7}, said + "VPP recognises none"},
		"lost, no statistics":              {lost, nil, nil, said + "VPP recognises none"},
		"another table":                    {lost, &Signs{}, &Signs{Strangers: 136, DeniedIn: 1}, said + "they come in where VPP does not know their connection"},
		"another table, outside role only": {astray, &Signs{}, &Signs{}, said + "they come in where VPP"},
		"denied":                           {lost, &Signs{}, &Signs{DeniedIn: 9}, said + "access lists in VPP deny packets"},
		"denied before the first look":     {lost, nil, &Signs{DeniedOut: 9, Lists: []string{"where packets leave at pod1 (policy)"}}, said + "access lists in VPP deny packets, where packets leave at pod1 (policy)"},
		"no tunnel":                        {lost, &Signs{}, &Signs{NoTunnel: 9}, said + "packets of a tunnel are dropped"},
		"one way back":                     {paired, &Signs{}, &Signs{}, "services are programmed, but answers do not come back: 4 of 4 connections of 198.18.0.1 to 10.1.1.1:80: other clients get answers there"},
		"foreign":                          {nil, &Signs{}, &Signs{Foreign: 16}, "NAT44 changes or drops packets of other protocols"},
		"a VPP that started anew":          {nil, &Signs{Foreign: 16}, &Signs{}, ""},
	} {
		now := time.Unix(1_000_000, 0)
		_, _, h := DecideAnswers(now, nil, tt.before, AnswersHistory{})
		_, got, h := DecideAnswers(now.Add(5*time.Second), tt.flows, tt.after, h)
		if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if _, over, _ := DecideAnswers(now.Add(2*signsCount), nil, tt.after, h); over != "" {
			t.Errorf("%s: a minute later: %q", name, over)
		}
	}
}

// TestSampler: the first look and each one after new connections find them with few dumps, whatever
// the number of backends; connections are forgotten with their time.
func TestSampler(t *testing.T) {
	r := newRig(t, 1000)
	s := &Sampler{}
	look := func(dumps int) (unanswered int) {
		t.Helper()
		flows, err := s.Look(t.Context(), r.link, r.Now(), dumps)
		if err != nil {
			t.Fatal(err)
		}
		for i := range flows {
			if flows[i].Unanswered() {
				unanswered++
			}
		}
		return unanswered
	}
	if n := look(4); n != 0 {
		t.Errorf("%d in an empty table", n)
	}
	r.fill(simulator.ProtoTCP, 20) // to two backends, without answers
	r.advance(3 * time.Second)
	first := look(2)
	if second := look(2); first == 0 || first == 20 || second != 20 {
		t.Errorf("%d with one dump, %d with another one, want 20 in the end", first, second)
	}
	r.fill(simulator.ProtoUDP, 5)
	if n := look(4); n != 20 {
		t.Errorf("%d with UDP", n)
	}
	r.advance(young)
	if n := look(4); n != 0 {
		t.Errorf("%d after their time", n)
	}
	r.Crash()
	if _, err := s.Look(t.Context(), r.link, r.Now(), 4); err == nil {
		t.Error("a dead VPP has connections")
	}
}
