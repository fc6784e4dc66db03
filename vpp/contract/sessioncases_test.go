package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// readUsage reads the usage of the table as the agent does.
func (v *rig) readUsage(t testing.TB, reader *sessions.Reader) (sessions.Usage, error) {
	t.Helper()
	usage, err := reader.Read(t.Context())
	gauge := errors.Is(err, sessions.ErrNoLimit)
	if err != nil && !gauge {
		return usage, err
	}
	check(t, "the limit is a gauge", v.version(t).gaugeOfLimit, gauge)
	if gauge {
		return sessions.WithLimit(t.Context(), v.link, usage)
	}
	return usage, nil
}

// housekeepingCases are what housekeeping of sessions reads and writes.
var housekeepingCases = []contractCase{
	{"sessions/statistics", func(t *testing.T, v *rig) {
		reader := sessions.NewReader(v.StatsSocket())
		read := func(what string, want sessions.Usage) {
			t.Helper()
			got, err := v.readUsage(t, reader)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			check(t, what, want, got)
		}
		read("plugin off", sessions.Usage{})
		v.expect(t, ok, &nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 4096})
		read("plugin on", sessions.Usage{Enabled: true, Base: 4096})
		v.expect(t, ok, &nat44_ed.Nat44SetSessionLimit{SessionLimit: 8192})
		read("a limit that is set later is not in the statistics", sessions.Usage{Enabled: true, Base: 4096})
		v.Crash(t)
		if usage, err := reader.Read(t.Context()); err == nil {
			t.Errorf("a dead VPP has statistics: %+v", usage)
		}
		v.Restart(t)
		v.waitDown(t)
		v.waitUp(t)
		waitFor(t, "statistics", func() bool { _, err := v.readUsage(t, reader); return err == nil })
		read("another VPP", sessions.Usage{})
	}},
	{"sessions/summary", func(t *testing.T, v *rig) {
		look := func(what string, want sessions.Survey) {
			t.Helper()
			got, err := sessions.Look(t.Context(), v.link)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			check(t, what, want, got)
		}
		look("plugin off", sessions.Survey{Known: true})
		v.expect(t, ok, enable)
		look("plugin on", sessions.Survey{Known: true, Limit: 1024, LimitKnown: true})
		if err := sessions.Raise(t.Context(), v.link, 100000); err != nil {
			t.Fatal(err)
		}
		look("another limit", sessions.Survey{Known: true, Limit: 100000, LimitKnown: true})
		usage, survey, err := sessions.Ask(t.Context(), v.link)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "usage without statistics", sessions.Usage{Enabled: true, Base: 1024, Costly: true}, usage)
		check(t, "survey", sessions.Survey{Known: true, Limit: 100000, LimitKnown: true}, survey)
	}},
	{"sessions/summary as text", func(t *testing.T, v *rig) {
		v.expect(t, ok, &nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 4096})
		check(t, "output", `max translations per thread: 4096 fib 0
total sessions: 0 (timed out: 0)
tcp sessions:
    total: 0 (timed out: 0)
        established: 0 (timed out: 0)
        transitory: 0 (timed out: 0)
udp sessions:
    total: 0 (timed out: 0)
icmp sessions:
    total: 0 (timed out: 0)
other sessions:
    total: 0 (timed out: 0)
`, ask[*vlib.CliInbandReply](t, v, &vlib.CliInband{Cmd: "show nat44 summary"}).Reply)
	}},
	{"sessions/nothing to free", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		freed := sessions.Free(t.Context(), v.link, nil, sessions.Slice{Deletions: 10, Dumps: 3})
		if freed.Err != nil || freed.Deleted+freed.Gone+freed.Errors != 0 || !freed.Complete {
			t.Errorf("freed %+v", freed)
		}
	}},
	{"sessions/a full table refuses connections until expired ones are freed", func(t *testing.T, v *rig) {
		h, reader := crowded(t, v), sessions.NewReader(v.StatsSocket())
		usage := func(want uint64) {
			t.Helper()
			got, err := v.readUsage(t, reader)
			if err != nil {
				t.Fatal(err)
			}
			check(t, "usage", sessions.Usage{Enabled: true, Base: crowd, Busiest: want, Total: want}, got)
		}
		usage(crowd)
		h.expire()
		usage(crowd)
		for range 3 {
			if h.dial() {
				t.Fatal("a full table took a connection although it does not drain")
			}
		}
		freed := sessions.Free(t.Context(), v.link, nil, sessions.Slice{Deletions: crowd / 2, Dumps: 100})
		if freed.Err != nil || freed.Deleted != crowd/2 || freed.Gone+freed.Errors != 0 || freed.Complete {
			t.Errorf("freed %+v", freed)
		}
		usage(crowd - crowd/2)
		freed = sessions.Free(t.Context(), v.link, freed.Left, sessions.Slice{Deletions: crowd, Dumps: 100})
		if freed.Err != nil || freed.Deleted != crowd-crowd/2 || freed.Gone+freed.Errors != 0 || !freed.Complete {
			t.Errorf("freed %+v", freed)
		}
		usage(0)
		if !h.dial() {
			t.Error("an empty table refuses a connection")
		}
		usage(1)
	}},
	{"sessions/a full table takes connections when the limit is raised", func(t *testing.T, v *rig) {
		h := crowded(t, v)
		if h.dial() {
			t.Fatal("the table is not full")
		}
		if err := sessions.Raise(t.Context(), v.link, crowd+10); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if !h.dial() {
				t.Error("a connection is refused below the limit")
			}
		}
		if h.dial() {
			t.Error("a connection beyond the limit")
		}
		look, err := sessions.Look(t.Context(), v.link)
		if err != nil || look.Limit != crowd+10 || look.All.Sessions != crowd+10 || look.By[sessions.UDP].Sessions+look.By[sessions.TCP].Sessions != crowd+10 {
			t.Errorf("%+v, %v", look, err)
		}
	}},
	{"sessions/answers that come in at another table", func(t *testing.T, v *rig) {
		h, reader := newHolder(t, v, 1), sessions.NewSignsReader(v.StatsSocket())
		// where an endpoint is its own frontend, VPP finds a flow to the answer's address
		web, own := h.row("10.96.0.1:80/TCP", 0, 0, 8080, []int{0}), h.row("10.1.0.2:8080/TCP", 0, 0, 8080, []int{1})
		h.want.Rows[web.Key], h.want.Rows[own.Key] = web, own
		h.settle(t, h.want)
		signs := func(what string, want sessions.Signs) {
			t.Helper()
			got, err := reader.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			check(t, what, want, got)
		}
		h.open(web.Key) // 4 packets of 48 bytes, answered
		signs("answered", sessions.Signs{New: 1})
		v.expect(t, ok, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 7, Name: "pods"}})
		strange := h.traffic.port(t, false)
		v.expect(t, ok, up(strange))
		v.expect(t, ok, &interfaces.SwInterfaceSetTable{SwIfIndex: strange, VrfID: 7})
		v.expect(t, ok, address(t, strange, "172.17.0.1/32"))
		h.want.Interfaces[uint32(strange)] = true
		h.settle(t, h.want)
		lost := &flow{row: web.Key, client: netip.MustParseAddrPort("198.18.200.1:3000")}
		kept := &flow{row: own.Key, client: netip.MustParseAddrPort("198.18.200.2:3000")}
		for i, f := range []*flow{lost, kept} {
			for range 3 {
				request := h.request(f, syn)
				got := h.traffic.exchange(t, []packet{request})[request.id]
				f.backend, f.seen = got.dst, got.src
				answer := h.answer(f, syn|ack)
				answer.port = strange
				if _, arrived := h.traffic.exchange(t, []packet{answer})[answer.id]; arrived {
					t.Errorf("%v: an answer from another table arrives", answer)
				}
			}
			signs([]string{"NAT44 passes the answers on as they are", "NAT44 drops the answers"}[i], sessions.Signs{New: uint64(2 + i), Strangers: uint64(3 * i)})
		}
		flows, err := new(sessions.Sampler).Look(t.Context(), v.link, time.Now(), 4)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[netip.AddrPort]string{}
		for _, f := range flows {
			counts[f.Client] = fmt.Sprint(f.Packets, " packets, ", f.Bytes, " bytes, of a service: ", f.Service)
		}
		check(t, "sessions", "3 packets, 144 bytes, of a service: true", counts[lost.client])
		check(t, "sessions", "3 packets, 144 bytes, of a service: true", counts[kept.client])
		check(t, "sessions", "4 packets, 192 bytes, of a service: true", counts[h.flows[0].client])
	}},
	{"sessions/answers astray with the outside role only", func(t *testing.T, v *rig) {
		h := newHolder(t, v, 1)
		web := h.row("10.96.0.1:80/TCP", 0, 0, 8080, []int{0})
		h.want.Rows[web.Key] = web
		h.settle(t, h.want)
		for index := range h.want.Interfaces {
			v.expect(t, ok, &nat44_ed.Nat44InterfaceAddDelFeature{SwIfIndex: interface_types.InterfaceIndex(index), Flags: nat_types.NAT_IS_INSIDE})
		}
		h.open(web.Key)
		lost := &flow{row: web.Key, client: netip.MustParseAddrPort("198.18.200.1:3000")}
		for range 3 {
			request := h.request(lost, syn)
			lost.backend = h.traffic.exchange(t, []packet{request})[request.id].dst
			refusal := h.request(lost, ack) // of an answer that came from the backend's address
			refusal.dst = lost.backend
			if _, arrived := h.traffic.exchange(t, []packet{refusal})[refusal.id]; !arrived {
				t.Error("a packet to the backend itself does not arrive")
			}
		}
		flows, err := new(sessions.Sampler).Look(t.Context(), v.link, time.Now(), 4)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[netip.AddrPort]string{}
		for _, f := range flows {
			counts[f.Client] = fmt.Sprint(f.Packets, " packets, ", f.Bytes, " bytes, unanswered: ", f.Unanswered())
		}
		check(t, "sessions", map[netip.AddrPort]string{
			h.flows[0].client: "4 packets, 192 bytes, unanswered: false", lost.client: "6 packets, 144 bytes, unanswered: true",
		}, counts)
	}},
	{"sessions/VPP frees one expired session for every new one until the table is full", func(t *testing.T, v *rig) {
		h := crowded(t, v)
		h.expire()
		if err := sessions.Raise(t.Context(), v.link, crowd+1); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if !h.dial() {
				t.Error("a connection is refused")
			}
		}
		if look, err := sessions.Look(t.Context(), v.link); err != nil || look.All != (sessions.Count{Sessions: crowd, Expired: crowd - 10}) {
			t.Errorf("%+v, %v", look, err)
		}
	}},
}

// crowd is the number of sessions that fill the table; odd, as the agent enables NAT44.
const crowd = 31

// crowded fills the table of a VPP with sessions of TCP and UDP, hairpins and masqueraded clients
// among them.
func crowded(t *testing.T, v *rig) *holder {
	t.Helper()
	h := newHolder(t, v, 1)
	h.want.SessionLimit = crowd
	web, dns := h.row("10.96.0.1:80/TCP", nat44.TwiceNAT, 0, 8080, []int{0, 1}), h.row("10.96.0.5:53/UDP", nat44.SelfTwiceNAT, 0, 8053, []int{0, 1, 2})
	h.want.Rows[web.Key], h.want.Rows[dns.Key] = web, dns
	h.settle(t, h.want)
	for i := range crowd {
		h.open([]rule.Key{web.Key, dns.Key}[i%2])
	}
	return h
}

// expire lets all sessions expire: established ones and those of UDP. New connections live, because
// they are not established yet. What VPP says of that counts in whole seconds and is up to a second
// early, so one more second has to pass.
func (h *holder) expire() {
	h.Helper()
	h.rig.expect(h.T, ok, &nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 1, TCPTransitory: 7200, ICMP: 1})
	waitFor(h.T, "sessions to expire", func() bool {
		for _, d := range h.sessions() {
			if !d.IsTimedOut || d.TimeSinceLastHeard < 2 {
				return false
			}
		}
		return true
	})
}

// dial opens a connection and reports whether VPP let it.
func (h *holder) dial() bool {
	h.Helper()
	h.next++
	p := packet{
		port: h.clients, id: h.next, src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 19, byte(h.next >> 8), byte(h.next)}), 30000),
		dst: netip.MustParseAddrPort("10.96.0.1:80"), proto: rule.TCP, flags: syn,
	}
	_, arrived := h.traffic.exchange(h.T, []packet{p})[p.id]
	return arrived
}
