package health

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage has the healer in a tree of probes.
type stage struct {
	*probe.Stage
	config *Config
	healed []string
	fatal  []error
}

// perform plays with the healer.
func perform(t *testing.T, play func(s *stage)) {
	t.Helper()
	s := &stage{Stage: probe.New(t)}
	s.config = &Config{
		Expected: []string{"interfaces", "link", "nat44", "nodes", "registry", "routes", "watch"}, Advisory: []string{"sessions", "external"},
		Forwarding: []string{"link", "nat44"}, Followers: []string{address.Renderer("nat44")},
		Patience: 30 * time.Second, Readiness: &Readiness{}, Observer: observer{s: s}, Fatal: func(err error) { s.fatal = append(s.fatal, err) },
	}
	s.Start(address.Healer, probe.Actors{address.Healer: func() runtime.Behaviour { return New(s.config) }})
	play(s)
}

// observer collects the steps that are counted.
type observer struct {
	report.None
	s *stage
}

func (o observer) Healed(part, step string, n int) {
	for range n {
		o.s.healed = append(o.s.healed, part+" "+step)
	}
}

// all reports the health of all parts, except the named ones.
func (s *stage) all(ok bool, but ...string) {
	s.Helper()
	for _, part := range s.config.Expected {
		if !slices.Contains(but, part) {
			s.Tell(&messages.Health{Part: part, Ok: ok, Reason: map[bool]string{false: "wrong"}[ok]})
		}
	}
}

// goOn lets time pass while all parts repeat their health, except the named ones.
func (s *stage) goOn(d time.Duration, other *messages.Health, but ...string) {
	s.Helper()
	for end := s.Sim.Now().Add(d); s.Sim.Now().Before(end); s.Run(report.Heartbeat) {
		s.all(true, but...)
		if other != nil {
			s.Tell(other)
		}
	}
}

func (s *stage) readiness() Report { return s.config.Readiness.Load() }

func TestHealerIsReadyWhenAllPartsAre(t *testing.T) {
	perform(t, func(s *stage) {
		for i, part := range s.config.Expected {
			if s.readiness().Ready {
				t.Errorf("ready after %d of %d parts", i, len(s.config.Expected))
			}
			s.Tell(&messages.Health{Part: part, Ok: true})
		}
		if r := s.readiness(); !r.Ready || r.Reasons() != "" || len(r.Parts) != 7 {
			t.Errorf("report %+v", r)
		}
		s.Tell(&messages.Health{Part: "nat44", Reason: "3 rows refused", Epoch: 7})
		if r := s.readiness(); r.Ready || r.Reasons() != "nat44: 3 rows refused" {
			t.Errorf("report %+v", r)
		}
		s.Tell(&messages.Health{Part: "nat44", Ok: true}, &messages.Health{Part: "stranger", Reason: "wrong"})
		if !s.readiness().Ready {
			t.Error("a part that is not expected keeps the node from being ready")
		}
	})
}

// TestAdvisoryPartsOnlyWarn: what they report stands beside readiness and does not change it, nor
// does their silence.
func TestAdvisoryPartsOnlyWarn(t *testing.T) {
	perform(t, func(s *stage) {
		s.all(true)
		warning := func() string {
			for _, p := range s.readiness().Parts {
				if p.Name == "sessions" {
					return p.Reason
				}
			}
			return "no part"
		}
		if got := warning(); got != "no part" {
			t.Errorf("without a report: %q", got)
		}
		s.Tell(&messages.Health{Part: "sessions", Ok: true, Reason: "alarm"})
		if got := warning(); got != "alarm" || !s.readiness().Ready {
			t.Errorf("warning %q, %+v", got, s.readiness())
		}
		s.goOn(2*report.SilentAfter, nil)
		if got := warning(); !strings.HasPrefix(got, "silent for ") || !s.readiness().Ready {
			t.Errorf("warning %q, %+v", got, s.readiness())
		}
	})
}

func TestHealerMissesASilentPart(t *testing.T) {
	perform(t, func(s *stage) {
		s.all(true)
		s.Run(report.SilentAfter - report.Heartbeat)
		if !s.readiness().Ready {
			t.Error("not ready before a part has been silent for long enough")
		}
		s.Run(2 * report.Heartbeat)
		if r := s.readiness(); r.Ready || !strings.Contains(r.Reasons(), "link: silent for") {
			t.Errorf("report %+v", r)
		}
		s.all(true)
		if !s.readiness().Ready {
			t.Error("not ready although all parts report again")
		}
	})
}

func TestHealerRecordsChangesOfReadinessOnly(t *testing.T) {
	perform(t, func(s *stage) {
		s.all(true)
		since := s.readiness().Since
		s.goOn(5*report.Heartbeat, nil)
		if n := len(probe.All[*messages.Event](s.Stage, address.Journal)); n != 1 || !s.readiness().Since.Equal(since) {
			t.Errorf("%d events, want one", n)
		}
		s.all(false)
		if n := len(probe.All[*messages.Event](s.Stage, address.Journal)); n != 2 || !s.readiness().Since.After(since) {
			t.Errorf("%d events, want a second one", n)
		}
	})
}

func TestWithoutHealerTheNodeIsNotReady(t *testing.T) {
	perform(t, func(s *stage) {
		if r := (&Readiness{}).Load(); r.Ready || r.Reasons() != "agent: starting" {
			t.Errorf("before the start: %+v", r)
		}
		s.all(true)
		s.Kill()
		if r := s.readiness(); r.Ready {
			t.Errorf("a new healer without any report publishes %+v", r)
		}
		s.all(true)
		if !s.readiness().Ready {
			t.Error("a new healer does not listen")
		}
		if err := s.System.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if r := s.readiness(); r.Ready || r.Reasons() != "agent: healer is down" {
			t.Errorf("after the end: %+v", r)
		}
	})
}

// TestHealerKnowsSinceWhen: each part has its own time, which repetition does not move.
func TestHealerKnowsSinceWhen(t *testing.T) {
	perform(t, func(s *stage) {
		since := func(part string) time.Time {
			for _, p := range s.readiness().Parts {
				if p.Name == part {
					return p.Since
				}
			}
			t.Fatalf("no part %s", part)
			return time.Time{}
		}
		began := since("link")
		s.Run(time.Second)
		s.all(true)
		turned := since("link")
		if began.IsZero() || !turned.After(began) {
			t.Errorf("no report since %v, ok since %v", began, turned)
		}
		s.Run(time.Second)
		s.all(true)
		s.Tell(&messages.Health{Part: "nat44", Reason: "wrong"})
		if !since("link").Equal(turned) || !since("nat44").After(turned) {
			t.Errorf("link since %v, want %v; nat44 wrong since %v", since("link"), turned, since("nat44"))
		}
	})
}

// TestReadyWithTheInterfaces: until the node is ready for the first time, each renderer must have
// carried out the interface set; later it may be behind.
func TestReadyWithTheInterfaces(t *testing.T) {
	perform(t, func(s *stage) {
		s.all(true)
		s.Tell(&messages.Health{Part: "nat44", Reason: "wrong"})
		s.Tell(&messages.Health{Part: "interfaces", Ok: true, Interfaces: 5})
		s.Tell(&messages.Health{Part: "nat44", Ok: true, Epoch: 1, Interfaces: 4})
		if r := s.readiness(); r.Ready || r.Reasons() != "nat44: interfaces are being programmed" {
			t.Errorf("report %+v", r)
		}
		s.Tell(&messages.Health{Part: "nat44", Ok: true, Epoch: 1, Interfaces: 5})
		s.Tell(&messages.Health{Part: "interfaces", Ok: true, Interfaces: 6})
		if r := s.readiness(); !r.Ready {
			t.Errorf("report %+v", r)
		}
	})
}

// TestNotReadyWithAnOldMirror: a part that works with the local mirror is outdated as soon as the
// source has delivered, even if the watch has not reported its health yet.
func TestNotReadyWithAnOldMirror(t *testing.T) {
	perform(t, func(s *stage) {
		s.all(true)
		s.Tell(&messages.Health{Part: "nat44", Ok: true, Reason: report.FromMirror})
		for _, asOf := range []int64{0, time.Now().UnixNano()} {
			s.Tell(&messages.Health{Part: "watch", Ok: true, AsOf: asOf})
			if r := s.readiness(); r.Ready || r.Reasons() != "nat44: "+report.FromMirror {
				t.Errorf("report %+v", r)
			}
		}
	})
}

// TestHealerEscalates: a part that does not recover gets one step after the other. The journal and
// the metrics show each step.
func TestHealerEscalates(t *testing.T) {
	perform(t, func(s *stage) {
		wrong := &messages.Health{Part: "nat44", Reason: "cannot read VPP", Epoch: 3, Reach: messages.Reach_REACH_DOWNSTREAM}
		s.goOn(5*time.Minute, wrong, "nat44")
		verify := probe.All[*messages.Verify](s.Stage, address.Renderer("nat44"))
		if len(verify) != 3 || verify[0].GetRoutine() || verify[0].GetReason() != "healing" {
			t.Errorf("readings %v", verify)
		}
		if n := len(probe.All[*messages.Pull](s.Stage, address.Registry)); n != 3 {
			t.Errorf("%d Pulls, want one for each full step", n)
		}
		if len(s.fatal) == 0 || !strings.Contains(s.fatal[0].Error(), "cannot read VPP") {
			t.Errorf("fatal %v", s.fatal)
		}
		want := []string{
			"nat44 downstream", "nat44 downstream", "nat44 downstream", "nat44 full", "nat44 full", "nat44 full", "nat44 subtree", "nat44 subtree",
			"nat44 exit",
		}
		if len(s.healed) < len(want) || !slices.Equal(s.healed[:len(want)], want) {
			t.Errorf("steps %q, want %q", s.healed, want)
		}
		var texts []string
		for _, e := range probe.All[*messages.Event](s.Stage, address.Journal) {
			if e.GetKind() == "healing" {
				texts = append(texts, e.GetText())
			}
		}
		if len(texts) < 9 || texts[0] != `escalation to step "downstream" after 30s without recovery` {
			t.Errorf("journal %q", texts)
		}
		page := s.Ask(&Query{}).(*Page)
		if len(page.Cases) != 1 || page.Cases[0].Part != "nat44" || page.Cases[0].Step != "exit" || page.Counts["nat44"]["full"] != 3 {
			t.Errorf("page %+v", page)
		}
		s.goOn(report.Heartbeat, nil)
		page = s.Ask(&Query{}).(*Page)
		last := probe.Latest[*messages.Event](s.Stage, address.Journal)
		if len(page.Cases) != 0 || last.GetText() != "ready" && last.GetText() != `recovered after step "exit" of the escalation` {
			t.Errorf("after the recovery %+v, %v", page, last)
		}
	})
}

// TestWhereTheEscalationBegins depends on how far what is wrong reaches, and on whether anything
// can be done from here.
func TestWhereTheEscalationBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		health *messages.Health // nil = the part is silent
		and    *messages.Health
		want   string
	}{
		"a renderer that has lost track of VPP": {&messages.Health{Part: "nat44", Reason: "x", Epoch: 1, Reach: messages.Reach_REACH_DOWNSTREAM}, nil, "nat44 downstream"},
		"interfaces that cannot be read":        {&messages.Health{Part: "interfaces", Reason: "x", Reach: messages.Reach_REACH_DOWNSTREAM}, nil, "interfaces full"},
		"a barrier that does not open":          {&messages.Health{Part: "nat44", Reason: "x", Epoch: 1, Reach: messages.Reach_REACH_UPSTREAM}, nil, "nat44 full"},
		"one that waits for the registry":       {&messages.Health{Part: "nat44", Reason: "x", Epoch: 1, Reach: messages.Reach_REACH_UPSTREAM}, &messages.Health{Part: "registry", Reason: "no snapshot"}, ""},
		"single objects":                        {&messages.Health{Part: "nat44", Reason: "x", Epoch: 1, Reach: messages.Reach_REACH_OBJECT}, nil, ""},
		"no VPP":                                {&messages.Health{Part: "link", Reason: "x"}, nil, ""},
		"silence":                               {nil, nil, "nat44 subtree"},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, func(s *stage) {
				but := []string{"nat44"}
				if tc.health != nil {
					but = []string{tc.health.GetPart()}
				}
				if tc.and != nil {
					but = append(but, tc.and.GetPart())
				}
				for end := s.Sim.Now().Add(50 * time.Second); s.Sim.Now().Before(end); s.Run(report.Heartbeat) {
					s.all(true, but...)
					for _, m := range []*messages.Health{tc.health, tc.and} {
						if m != nil {
							s.Tell(m)
						}
					}
				}
				if got := strings.Join(s.healed, ", "); got != tc.want {
					t.Errorf("steps %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestSleepIsNoSilence: a machine that slept finds no part that has had time to recover.
func TestSleepIsNoSilence(t *testing.T) {
	perform(t, func(s *stage) {
		wrong := &messages.Health{Part: "nat44", Reason: "cannot read VPP", Epoch: 3, Reach: messages.Reach_REACH_DOWNSTREAM}
		s.goOn(10*time.Second, wrong, "nat44")
		s.Sim.Skip(time.Hour)
		s.goOn(15*time.Second, wrong, "nat44")
		if len(s.healed) != 0 {
			t.Errorf("steps %q right after an hour of sleep", s.healed)
		}
		if s.goOn(20*time.Second, wrong, "nat44"); len(s.healed) != 1 {
			t.Errorf("steps %q", s.healed)
		}
	})
}

// TestHealerCountsStepsOfRenderers: the first two steps are taken by the renderers themselves.
func TestHealerCountsStepsOfRenderers(t *testing.T) {
	perform(t, func(s *stage) {
		s.Tell(&report.Healed{Part: "nat44", Step: report.StepKey, N: 2})
		if got := s.Ask(&Query{}).(*Page).Counts["nat44"]["key"]; got != 2 || !slices.Equal(s.healed, []string{"nat44 key", "nat44 key"}) {
			t.Errorf("counted %d, observed %q", got, s.healed)
		}
	})
}

// TestForwarding: what parts say, and for how long => whether this node may attract packets.
func TestForwarding(t *testing.T) {
	perform(t, func(s *stage) {
		told := func(when string, ok, before bool) {
			t.Helper()
			last := probe.Latest[*report.Forwarding](s, address.Renderer("nat44"))
			if got := *cmp.Or(last, &report.Forwarding{}); got != (report.Forwarding{OK: ok, Before: before}) {
				t.Errorf("%s: told %+v", when, got)
			}
		}
		programming := &messages.Health{Part: "nat44", Partial: true, Reason: "9 rows are being programmed"}
		unknown := &messages.Health{Part: "nat44", Reason: "what VPP holds is not known"}
		s.all(true, "nat44")
		told("nat44 has not reported", false, false)
		s.Tell(programming)
		told("rows are on their way", false, false)
		s.Tell(&messages.Health{Part: "nat44", Ok: true})
		told("all rows are in VPP", true, true)
		s.Tell(unknown)
		s.goOn(4*time.Second, unknown, "nat44")
		told("nat44 has restarted", true, true)
		s.goOn(4*time.Second, unknown, "nat44")
		told("nat44 cannot read VPP", false, true)
		s.Tell(&messages.Health{Part: "nat44", Ok: true})
		told("nat44 is well again", true, true)
		s.Tell(programming)
		s.goOn(time.Minute, programming, "nat44")
		told("VPP refuses a row", true, true)
		s.Tell(&report.Emptied{})
		told("VPP is another one", true, true) // the row has been refused for long
		s.Tell(&messages.Health{Part: "nat44", Ok: true})
		s.Tell(unknown)
		s.Tell(&report.Emptied{})
		s.Tell(programming)
		s.goOn(20*time.Second, programming, "nat44")
		s.Tell(&messages.Resync{})
		told("VPP is another one, and gets its rows", false, false)
		s.goOn(20*time.Second, programming, "nat44")
		told("a row is not in VPP for long", true, true)
	})
}
