package contract

import (
	"errors"
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"
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
		usage(crowd / 2)
		freed = sessions.Free(t.Context(), v.link, freed.Left, sessions.Slice{Deletions: crowd, Dumps: 100})
		if freed.Err != nil || freed.Deleted != crowd/2 || freed.Gone+freed.Errors != 0 || !freed.Complete {
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

// crowd is the number of sessions that fill the table.
const crowd = 30

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
