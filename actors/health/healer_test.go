package health

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// everybodyIs tells the healer that all parts are healthy.
func (s *stage) everybodyIs(ok bool) {
	s.Helper()
	for _, part := range s.deps.expected() {
		s.tell(&messages.Health{Part: part, Ok: ok, Reason: map[bool]string{false: "ill"}[ok]})
	}
}

func TestHealerIsReadyWhenEverybodyIs(t *testing.T) {
	perform(t, PathHealer, nil, func(s *stage) {
		for i, part := range s.deps.expected() {
			if s.deps.Readiness.Load().Ready {
				t.Errorf("ready after %d of %d parts", i, len(s.deps.expected()))
			}
			s.tell(&messages.Health{Part: part, Ok: true})
		}
		report := s.deps.Readiness.Load()
		if !report.Ready || report.Reasons() != "" || len(report.Parts) != 7 {
			t.Errorf("report %+v", report)
		}
		s.tell(&messages.Health{Part: "nat44", Reason: "3 rows refused", Epoch: 7})
		report = s.deps.Readiness.Load()
		if report.Ready || report.Reasons() != "nat44: 3 rows refused" {
			t.Errorf("report %+v", report)
		}
		s.tell(&messages.Health{Part: "nat44", Ok: true}, &messages.Health{Part: "stranger", Reason: "ill"})
		if !s.deps.Readiness.Load().Ready {
			t.Error("somebody who is not needed keeps the node from being ready")
		}
	})
}

func TestHealerDoesNotNeedNodesOnALoneNode(t *testing.T) {
	d := &Deps{}
	if got := strings.Join(d.expected(), " "); strings.Contains(got, "nodes") {
		t.Errorf("waits for %s", got)
	}
}

func TestHealerMissesWhoFallsSilent(t *testing.T) {
	perform(t, PathHealer, nil, func(s *stage) {
		s.everybodyIs(true)
		s.run(healthStale)
		if !s.deps.Readiness.Load().Ready {
			t.Error("impatient")
		}
		s.run(2 * healthRepeat)
		if report := s.deps.Readiness.Load(); report.Ready || !strings.Contains(report.Reasons(), "link: silent for") {
			t.Errorf("report %+v", report)
		}
		s.everybodyIs(true)
		if !s.deps.Readiness.Load().Ready {
			t.Error("not ready although everybody speaks again")
		}
	})
}

func TestHealerWritesDownChangesOfReadinessOnly(t *testing.T) {
	perform(t, PathHealer, nil, func(s *stage) {
		s.everybodyIs(true)
		since := s.deps.Readiness.Load().Since
		for range 5 {
			s.run(healthRepeat)
			s.everybodyIs(true)
		}
		if n := len(all[*messages.Event](s, PathJournal)); n != 1 || !s.deps.Readiness.Load().Since.Equal(since) {
			t.Errorf("%d events, want one", n)
		}
		s.everybodyIs(false)
		if n := len(all[*messages.Event](s, PathJournal)); n != 2 || !s.deps.Readiness.Load().Since.After(since) {
			t.Errorf("%d events, want a second one", n)
		}
	})
}

func TestWithoutHealerTheNodeIsNotReady(t *testing.T) {
	perform(t, PathHealer, nil, func(s *stage) {
		if r := (&Readiness{}).Load(); r.Ready || r.Reasons() != "agent: starting" {
			t.Errorf("before the start: %+v", r)
		}
		s.everybodyIs(true)
		s.kill()
		if report := s.deps.Readiness.Load(); report.Ready {
			t.Errorf("a new healer has heard of nobody, but reports %+v", report)
		}
		s.everybodyIs(true)
		if !s.deps.Readiness.Load().Ready {
			t.Error("a new healer does not listen")
		}
		if err := s.sys.Shutdown(s.Context()); err != nil {
			t.Error(err)
		}
		if report := s.deps.Readiness.Load(); report.Ready {
			t.Errorf("after the end: %+v", report)
		}
	})
}

func TestReporterRepeatsItself(t *testing.T) {
	for _, path := range []string{PathLink, PathInterfaces, PathRegistry, PathNodes, PathWatch, PathRenderer("nat44")} {
		t.Run(path, func(t *testing.T) {
			perform(t, path, nil, func(s *stage) {
				s.deps.Timing.Retry, s.deps.Timing.Rediscover, s.deps.Timing.Digest = time.Hour, time.Hour, time.Hour
				s.kill()
				s.forget()
				s.run(5*healthRepeat + time.Second)
				if n := len(all[*messages.Health](s, PathHealer)); n < 5 {
					t.Errorf("told its health %d times in %s: the healer would take it for dead", n, 5*healthRepeat)
				}
			})
		})
	}
}

// TestHealerKnowsSinceWhen: each part has its own time, which repetition does not move.
func TestHealerKnowsSinceWhen(t *testing.T) {
	perform(t, PathHealer, nil, func(s *stage) {
		since := func(part string) time.Time {
			for _, p := range s.deps.Readiness.Load().Parts {
				if p.Name == part {
					return p.Since
				}
			}
			t.Fatalf("no part %s", part)
			return time.Time{}
		}
		began := since("link")
		s.run(time.Second)
		s.everybodyIs(true)
		turned := since("link")
		if began.IsZero() || !turned.After(began) {
			t.Errorf("not heard of since %v, well since %v", began, turned)
		}
		s.run(time.Second)
		s.everybodyIs(true)
		s.tell(&messages.Health{Part: "nat44", Reason: "ill"})
		if !since("link").Equal(turned) || !since("nat44").After(turned) {
			t.Errorf("link since %v, want %v; nat44 ill since %v", since("link"), turned, since("nat44"))
		}
	})
}
