package actors

import (
	"net/netip"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// TestVigil: reading takes a thousandth of the time, within the bounds.
func TestVigil(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ms := func(all ...float64) (took []time.Duration) {
		for _, one := range all {
			took = append(took, time.Duration(one*float64(time.Millisecond)))
		}
		return took
	}
	least := Timing{}.withDefaults().AuditLeast
	for _, c := range []struct {
		timing Timing
		took   []time.Duration // by the readings so far
		want   time.Duration   // until the next one
	}{
		{Timing{}, ms(0, 0), least},
		{Timing{}, ms(0.6, 0.6), least},                   // a hundred rows
		{Timing{}, ms(2.2, 2.2), 1200 * time.Millisecond}, // a thousand
		{Timing{}, ms(33, 33), 32 * time.Second},          // ten thousand
		{Timing{}, ms(33), least},                         // once may be by chance
		{Timing{}, ms(5000, 5000), time.Minute},
		{Timing{}, ms(0.6, 44), least}, // the second one has waited for something else
		{Timing{}, ms(44, 0.6), least},
		{Timing{}, ms(0.6, 44, 33), 32 * time.Second}, // twice is not by chance
		{Timing{AuditLeast: 10 * time.Second}, ms(1, 1), 10 * time.Second},
		{Timing{AuditLeast: time.Hour}, ms(1, 1), time.Minute}, // no longer than what is promised
		{Timing{Audit: 200 * time.Millisecond}, ms(1, 1), 200 * time.Millisecond},
		{Timing{Audit: time.Hour}, ms(5000, 5000), time.Hour},
		{Timing{}, ms(-1000, -1000), least}, // no clock does that
	} {
		timing := c.timing.withDefaults()
		v, end := newVigil(timing), start
		if v.due(start) || v.overdue(start.Add(24*time.Hour)) {
			t.Errorf("%+v: it is due before VPP has been read once", c)
		}
		for _, took := range c.took {
			end = end.Add(took)
			v.looked(end.Add(-took), end)
		}
		if v.pause != c.want || v.due(end.Add(c.want-1)) || !v.due(end.Add(c.want)) {
			t.Errorf("%+v: %v", c, v.pause)
		}
		if v.overdue(end.Add(timing.Audit-1)) || !v.overdue(end.Add(timing.Audit)) {
			t.Errorf("%+v: overdue at another time than after %v", c, timing.Audit)
		}
	}
}

// TestRendererFindsDamage: what others do to VPP is found within a second, nobody has to tell.
func TestRendererFindsDamage(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a", "b/b")
		s.serve("a/a", 1, "10.0.0.1")
		s.serve("b/b", 1, "10.0.0.2")
		if _, err := s.wire.vpp.ForeignRemove(netip.MustParseAddrPort("10.0.0.1:80"), 6); err != nil {
			t.Fatal(err)
		}
		s.forget()
		s.run(s.deps.Timing.AuditLeast)
		if got := len(s.vips()); got != 2 || !s.readiness().GetOk() {
			t.Errorf("%d rows, %v", got, s.readiness())
		}
		if told := all[*messages.RenderAck](s, PathService("b/b")); len(told) > 0 {
			t.Errorf("b/b was told %v, which is no news", told)
		}
	})
}

// TestRendererChecksQuietly: checks that find nothing cost readings and nothing else, and only the audit has everybody told again.
func TestRendererChecksQuietly(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 1, "10.0.0.1")
		s.forget()
		checks := s.wire.checks
		writes, reads := s.wrote(func() { s.run(30 * s.deps.Timing.AuditLeast) })
		if n := s.wire.checks - checks; writes+reads > 0 || n < 29 || n > 31 {
			t.Errorf("%d writes, %d reads, %d checks in thirty times the least pause", writes, reads, n)
		}
		if events, acks := all[*messages.Event](s, PathJournal), all[*messages.RenderAck](s, PathService("a/a")); len(events)+len(acks) > 0 {
			t.Errorf("in the journal %v, told %v", events, acks)
		}
		s.tell(&messages.Verify{Reason: reasonAudit})
		s.run(s.deps.Timing.AuditLeast)
		if acks := all[*messages.RenderAck](s, PathService("a/a")); len(acks) != 1 {
			t.Errorf("told %v after the audit", acks)
		}
	})
}

// TestRoutesFindDamage: the same for routes, in a whole troupe.
func TestRoutesFindDamage(t *testing.T) {
	inHouse(t, 1, nil, func(h *house) {
		h.serve("empty", "10.96.0.66")
		h.run(10 * time.Second)
		held, err := routes.Read(t.Context(), h.wire)
		if err != nil || len(held.Routes) < 2 {
			t.Fatalf("%+v, %v", held, err)
		}
		for _, r := range routes.Apply(t.Context(), h.wire, routes.Diff(held, nil, true)) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		if h.wrongRoutes() == nil {
			t.Fatal("nobody misses the routes")
		}
		h.run(h.deps.Timing.AuditLeast + 100*time.Millisecond)
		if wrong := h.wrong(); wrong != "" {
			t.Error(wrong)
		}
	})
}
