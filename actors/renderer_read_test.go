package actors

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestRendererReadsBackWhatItCannotKnow: connections that break at every point of a batch.
func TestRendererReadsBackWhatItCannotKnow(t *testing.T) {
	for at := 1; at <= 14; at++ {
		withRenderer(t, func(s *stage) {
			s.begin(1, "a/a")
			s.wire.breakAfter(at)
			s.serve("a/a", 1, "10.0.0.1", "10.0.0.2", "10.0.0.3")
			s.connected()
			if h := s.readiness(); h.GetOk() && s.wire.breakAt == 0 {
				t.Errorf("break after %d: ready without a connection", at)
			}
			s.wire.breakAfter(0)
			s.wire.connect()
			s.connected()
			s.found(2)
			s.run(2 * time.Second)
			if got := len(s.vips()); got != 3 || s.standing("a/a") != inSync || !s.readiness().GetOk() {
				t.Errorf("break after %d: %d rows, told %v, %v", at, got, s.standing("a/a"), s.readiness())
			}
		})
	}
}

func TestRendererFillsAnotherVPPOnce(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.wire.crash()
		s.connected()
		if h := s.readiness(); h.GetOk() || h.GetReason() != causeLink {
			t.Errorf("health %v", h)
		}
		s.run(time.Minute)
		s.wire.connect()
		s.connected()
		if got := len(s.vips()); got != 0 || s.readiness().GetReason() != causeInterfaces {
			t.Errorf("%d rows before the interfaces are known, %v", got, s.readiness())
		}
		s.forget()
		s.found(2)
		if got := len(s.vips()); got != 2 || s.standing("a/a") != inSync || !s.readiness().GetOk() {
			t.Errorf("%d rows, told %v, %v", got, s.standing("a/a"), s.readiness())
		}
		if ready := all[*messages.Health](s, PathHealer); len(ready) > 3 {
			t.Errorf("told its health %d times on the way: %v", len(ready), ready)
		}
	})
}

// TestRendererDoesNotTakeOneVPPForAnother: the news that the connection was lost may never come.
func TestRendererDoesNotTakeOneVPPForAnother(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 1, "10.0.0.1")
		s.wire.crash()
		s.wire.connect()
		s.connected() // without a word that it was down
		s.found(2)
		if got := len(s.vips()); got != 1 {
			t.Errorf("%d rows in the new VPP, want 1", got)
		}
		s.tell(&messages.LinkState{Session: 1, Reason: "long ago"})
		if !s.readiness().GetOk() {
			t.Errorf("an overtaken message counts: %v", s.readiness())
		}
	})
}

// TestRendererRetriesWhatWasRefused: once a second, one row at a time, and without disturbing others; VPP is read for it later and later.
func TestRendererRetriesWhatWasRefused(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a", "b/b")
		tries := 0
		s.wire.refuse = func(req api.Message) error {
			row, ok := req.(*nat44_ed.Nat44AddDelLbStaticMapping)
			if !ok || row.ExternalAddr != [4]byte{10, 0, 0, 1} {
				return nil
			}
			tries++
			return &link.RetvalError{Message: row.GetMessageName(), Retval: -1}
		}
		s.serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.serve("b/b", 1, "10.0.0.3")
		if s.standing("a/a") != failed || s.standing("b/b") != inSync {
			t.Errorf("a/a was told %v, b/b %v", s.standing("a/a"), s.standing("b/b"))
		}
		s.run(2 * time.Second)
		if h := s.readiness(); h.GetOk() || !strings.Contains(h.GetReason(), "1 rows refused by VPP, first 10.0.0.1:80/TCP") {
			t.Errorf("health %v", h)
		}
		_, reads := s.wrote(func() { s.run(5 * time.Minute) })
		if tries < 300 || tries > 320 || reads > 10 {
			t.Errorf("tried %d times in five minutes, with %d reads", tries, reads)
		}
		s.wire.refuse = nil
		s.run(s.deps.Timing.Backoff)
		if s.standing("a/a") != inSync || !s.readiness().GetOk() {
			t.Errorf("told %v, %v", s.standing("a/a"), s.readiness())
		}
	})
}

// TestRendererDoesNotHammerVPP: whatever VPP refuses, settings and rows alike, it is not asked in a loop.
func TestRendererDoesNotHammerVPP(t *testing.T) {
	for name, refusal := range map[string]error{
		"refused":      &link.RetvalError{Message: "m", Retval: -1},
		"exists":       &link.RetvalError{Message: "m", Retval: -81},
		"vanished":     &link.RetvalError{Message: "m", Retval: -6},
		"disabled":     &link.RetvalError{Message: "m", Retval: -126},
		"no interface": &link.RetvalError{Message: "m", Retval: -2},
		"not sent":     link.ErrNotSent,
		"no answer":    link.ErrUnknown,
		"guarded":      link.ErrRefused,
		"unsupported":  link.ErrUnsupported,
	} {
		t.Run(name, func(t *testing.T) {
			withRenderer(t, func(s *stage) {
				s.wire.refuse = func(api.Message) error { return refusal }
				s.begin(1, "a/a")
				s.kill()
				s.connected()
				s.found(2)
				s.begin(2, "a/a")
				writes, reads := s.wrote(func() {
					s.serve("a/a", 1, "10.0.0.1")
					s.serve("a/a", 2, "10.0.0.1", "10.0.0.2")
					s.run(time.Minute)
				})
				if writes > 200 || reads > 70 {
					t.Errorf("%d writes and %d reads in a minute", writes, reads)
				}
				if s.readiness().GetOk() {
					t.Error("ready")
				}
				s.wire.refuse = nil
				s.run(time.Minute)
				if got := len(s.vips()); got != 2 || !s.readiness().GetOk() {
					t.Errorf("afterwards %d rows, %v", got, s.readiness())
				}
			})
		})
	}
}

func TestRendererLeavesAForeignRowAlone(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		foreign := simulator.ForeignRow{VIP: netip.MustParseAddrPort("10.0.0.1:80"), Proto: 6, Tag: "theirs", Backends: []simulator.Backend{
			{Addr: netip.MustParseAddrPort("10.9.9.1:80"), Weight: 1}, {Addr: netip.MustParseAddrPort("10.9.9.2:80"), Weight: 1},
		}}
		s.serve("a/a", 1, "10.0.0.2")
		if _, err := s.wire.vpp.ForeignAdd(foreign); err != nil {
			t.Fatal(err)
		}
		s.serve("a/a", 2, "10.0.0.1", "10.0.0.2") // collides, because the foreign row came after the last read
		s.run(time.Millisecond)
		ack := latest[*messages.RenderAck](s, PathService("a/a"))
		if len(ack.GetConflicts()) != 1 || !strings.Contains(ack.GetConflicts()[0].GetOwner(), "theirs") {
			t.Errorf("conflicts %v", ack.GetConflicts())
		}
		if !s.readiness().GetOk() || len(s.wire.vpp.Rows()) != 2 {
			t.Errorf("%v, VPP holds %q", s.readiness(), s.wire.vpp.Rows())
		}
		if _, err := s.wire.vpp.ForeignRemove(foreign.VIP, 6); err != nil {
			t.Fatal(err)
		}
		s.tell(&messages.Verify{Reason: "test"})
		if got := len(s.vips()); got != 2 {
			t.Errorf("%d rows after the foreign one went, want 2", got)
		}
	})
}

// TestRendererRepairsDamage: somebody else changed VPP. Until it is repaired the node is not ready; a verification without damage changes
// nothing.
func TestRendererRepairsDamage(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a")
		s.serve("a/a", 1, "10.0.0.1", "10.0.0.2")
		s.forget()
		s.tell(&messages.Verify{Reason: "test"})
		if v := latest[*messages.Verified](s, PathIntrospect); v == nil || v.GetDifferences() != 0 {
			t.Errorf("verified %v", v)
		}
		if s.standing("a/a") != inSync {
			t.Error("the service was not told again, though the last answer may be lost")
		}
		if h := all[*messages.Health](s, PathHealer); len(h) != 0 {
			t.Errorf("health flapped: %v", h)
		}
		if _, err := s.wire.vpp.ForeignRemove(netip.MustParseAddrPort("10.0.0.1:80"), 6); err != nil {
			t.Fatal(err)
		}
		s.tell(&messages.Verify{Reason: "test"})
		if v := latest[*messages.Verified](s, PathIntrospect); v.GetDifferences() != 1 || len(s.vips()) != 2 {
			t.Errorf("verified %v, VPP holds %q", v, s.vips())
		}
		h := all[*messages.Health](s, PathHealer)
		if len(h) != 2 || h[0].GetOk() || !h[1].GetOk() {
			t.Errorf("health while it was damaged: %v", h)
		}
	})
}

// TestRendererCountsNoChangeOfOursAsDamage: a verification in the middle of ordinary changes.
func TestRendererCountsNoChangeOfOursAsDamage(t *testing.T) {
	withRenderer(t, func(s *stage) {
		s.begin(1, "a/a", "b/b")
		s.serve("a/a", 1, "10.0.0.1")
		s.serve("b/b", 1, "10.0.0.2")
		s.forget()
		for i := range uint64(20) {
			s.sys.Send(s.sys.PID(s.path), &messages.Verify{Reason: "test"})
			s.sys.Send(s.sys.PID(s.path), &messages.Render{Key: "a/a", Generation: 2 + i, Epoch: 2, Hash: 2 + i, View: viewOf("a/a", 3, "10.0.0.1", "10.0.1."+string('1'+byte(i%9)))})
			s.run(0)
		}
		s.run(time.Second)
		for _, v := range all[*messages.Verified](s, PathIntrospect) {
			if v.GetDifferences() != 0 {
				t.Errorf("verified %v", v)
			}
		}
		for _, h := range all[*messages.Health](s, PathHealer) {
			if !h.GetOk() {
				t.Errorf("health flapped: %v", h)
			}
		}
	})
}
