package agent

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestSessionsOnTheMetricsPage: usage out of VPP's statistics, sessions by protocol, the limit and
// its change are on the metrics page; a table that is nearly full and may not grow warns, and the
// node stays ready.
func TestSessionsOnTheMetricsPage(t *testing.T) {
	t.Parallel()
	cfg := everything(t)
	cfg.NAT44.SessionLimit, cfg.NAT44.SessionLimitMax, cfg.NAT44.SessionCheckInterval = 1001, 1500, config.Duration(1e9)
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	vpp := a.Simulator()
	page := func(series, want string) {
		t.Helper()
		eventually(t, series+" is "+want, func() bool { return scrape(t, a).find(series) == want })
	}
	page("troupe_nat_session_limit", "1001")
	if _, err := vpp.FillSessions(700); err != nil {
		t.Fatal(err)
	}
	page("troupe_nat_sessions_busiest_worker", "700")
	if _, err := vpp.FillSessions(950); err != nil { // most of them are there
		t.Fatal(err)
	}
	page("troupe_nat_session_limit", "1500")
	for len(vpp.Rows()) > 0 { // to the last place
		n, err := vpp.FillSessions(2000)
		if err != nil {
			t.Fatal(err)
		}
		if n < 2000 {
			break
		}
	}
	page("troupe_nat_session_alarm", "1")
	page(`troupe_nat_sessions{protocol="udp"}`, "1500")
	page("troupe_nat_session_errors_total", "0")
	page(`troupe_ready{part="sessions"}`, "1")
	report := a.Backend().Readiness()
	warned := false
	for _, p := range report.Parts {
		warned = warned || p.Name == "sessions" && p.OK && strings.Contains(p.Reason, "the limit of 1500 is the highest allowed")
	}
	if !report.Ready || !warned {
		t.Errorf("readiness %+v", report)
	}
	events, err := a.Backend().Events(t.Context(), api.EventQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range events.Items {
		texts = append(texts, e.Text)
	}
	for _, want := range []string{"NAT sessions are read from VPP's statistics", "NAT session limit 1001 -> 1500", "alarm: new connections are about to be refused"} {
		if !strings.Contains(strings.Join(texts, "\n"), want) {
			t.Errorf("the journal does not say %q", want)
		}
	}
}

// TestExpiredSessionsAreFreed: with sessions that expire within a second the table never stays
// full, and a new connection is served.
func TestExpiredSessionsAreFreed(t *testing.T) {
	t.Parallel()
	cfg := everything(t)
	cfg.NAT44.SessionLimit, cfg.NAT44.SessionLimitMax, cfg.NAT44.SessionCheckInterval = 1001, 1001, config.Duration(1e9)
	cfg.NAT44.Timeouts.UDP = config.Duration(1e9)
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	if n, err := a.Simulator().FillSessions(2000); n != 1001 || err != nil {
		t.Fatalf("%d sessions, %v", n, err)
	}
	eventually(t, "sessions are deleted", func() bool { return scrape(t, a).find("troupe_nat_sessions_deleted_total") == "401" })
	eventually(t, "a connection is served", func() bool {
		return a.Simulator().Send(simulator.Packet{
			In: HostInterface, Proto: simulator.ProtoTCP, Src: netip.MustParseAddrPort("172.30.0.1:2000"),
			Dst: netip.MustParseAddrPort("10.96.0.1:443"),
		}).Action == simulator.Delivered
	})
}

// TestServiceSessions: the sessions of a service are those that VPP has, of its backends only.
func TestServiceSessions(t *testing.T) {
	a := run(t, everything(t))
	ready(t, a)
	settled(t, a)
	web := must(a.Backend().Service(t.Context(), "shop/web"))(t)
	vip := netip.MustParseAddrPort(strings.TrimSuffix(web.InVPP[0].VIP, "/TCP"))
	for port := range uint16(50) {
		v := a.Simulator().Send(simulator.Packet{In: HostInterface, Src: netip.AddrPortFrom(netip.MustParseAddr("172.30.0.1"), 4000+port), Dst: vip, Proto: simulator.ProtoTCP})
		if v.Action != simulator.Delivered {
			t.Fatalf("%+v", v)
		}
	}
	total := 0
	for _, s := range must(a.Backend().Services(t.Context()))(t) {
		got := must(a.Backend().ServiceSessions(t.Context(), s.Key))(t)
		detail := must(a.Backend().Service(t.Context(), s.Key))(t)
		total += len(got.Items)
		for _, one := range got.Items {
			known := false
			for _, row := range detail.InVPP {
				known = known || row.VIP == one.Frontend+"/"+one.Protocol
			}
			if !known || one.Client == "" || one.Backend == "" {
				t.Errorf("%s: %+v", s.Key, one)
			}
		}
	}
	if total != 50 {
		t.Errorf("%d sessions of all services", total)
	}
	if _, err := a.Backend().ServiceSessions(t.Context(), "shop/none"); !errors.Is(err, api.ErrNotFound) {
		t.Error(err)
	}
}
