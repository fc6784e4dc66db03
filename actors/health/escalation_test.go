package health

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/actors/report"
)

const calm = 30 * time.Second

// escalates lets parts be wrong for a time, looks every two seconds as the healer does, and lists
// the steps: "12m30s nat44 full".
func escalates(e *escalation, from time.Time, lasts time.Duration, reason func(part string, at time.Duration) string, lowest report.Step, parts ...string) (done []string) {
	for at := time.Duration(0); at <= lasts; at += 2 * time.Second {
		for _, part := range parts {
			why := reason(part, at)
			if why == "" {
				e.recovered(part)
				continue
			}
			if step := e.failing(part, why, lowest, from.Add(at)); step != report.NoStep {
				done = append(done, fmt.Sprintf("%s %s %s", at, part, step))
			}
		}
	}
	return done
}

func always(string, time.Duration) string { return "refused" }

func TestEscalation(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		play func(e *escalation) []string
		want []string
	}{
		"what recovers by itself is left alone": {
			play: func(e *escalation) []string {
				return escalates(e, now, time.Hour, func(_ string, at time.Duration) string {
					return map[bool]string{true: "refused"}[at%time.Minute < calm-2*time.Second]
				}, report.StepDownstream, "nat44")
			},
		},
		"what does not takes every step": {
			play: func(e *escalation) []string {
				return escalates(e, now, 5*time.Minute, always, report.StepDownstream, "nat44")
			},
			want: []string{
				"30s nat44 downstream", "1m0s nat44 downstream", "1m30s nat44 downstream", "2m0s nat44 full", "2m30s nat44 full", "3m0s nat44 full",
				"3m30s nat44 subtree", "4m0s nat44 subtree", "4m30s nat44 exit", "5m0s nat44 exit",
			},
		},
		"a part that is silent is not asked": {
			play: func(e *escalation) []string {
				return escalates(e, now, 2*time.Minute, always, report.StepSubtree, "nat44")
			},
			want: []string{"30s nat44 subtree", "1m0s nat44 subtree", "1m30s nat44 exit", "2m0s nat44 exit"},
		},
		"two parts have one budget for what concerns all": {
			play: func(e *escalation) []string {
				return escalates(e, now, 4*time.Minute, always, report.StepFull, "nat44", "routes")
			},
			want: []string{
				"30s nat44 full", "1m0s nat44 full", "1m30s nat44 full", "2m0s nat44 subtree", "2m30s nat44 subtree", "3m0s nat44 exit", "3m30s nat44 exit",
				"4m0s nat44 exit",
			},
		},
		"a new case escalates faster when the budget is spent, and slowly again later": {
			play: func(e *escalation) []string {
				done := escalates(e, now, 90*time.Second, always, report.StepDownstream, "nat44")
				e.recovered("nat44")
				done = append(done, escalates(e, now.Add(3*time.Minute), calm, always, report.StepDownstream, "nat44")...)
				e.recovered("nat44")
				return append(done, escalates(e, now.Add(time.Hour), calm, always, report.StepDownstream, "nat44")...)
			},
			want: []string{"30s nat44 downstream", "1m0s nat44 downstream", "1m30s nat44 downstream", "30s nat44 full", "30s nat44 downstream"},
		},
		"time in which the process slept does not count": {
			play: func(e *escalation) []string {
				done := escalates(e, now, 10*time.Second, always, report.StepDownstream, "nat44")
				e.slept(time.Minute)
				return append(done, escalates(e, now.Add(70*time.Second), calm, always, report.StepDownstream, "nat44")...)
			},
			want: []string{"20s nat44 downstream"},
		},
	} {
		if got := tt.play(newEscalation(calm)); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, tt.want)
		}
	}
}

// TestEscalationIsNotFooledByARestart: a part that was restarted waits for others at first. A wait
// for VPP is no recovery, but a VPP that stays away ends the case.
func TestEscalationIsNotFooledByARestart(t *testing.T) {
	e, now := newEscalation(calm), time.Unix(1_000_000, 0)
	_ = escalates(e, now, 2*time.Minute, always, report.StepDownstream, "nat44")
	if is := e.cases["nat44"]; is.at != report.StepFull {
		t.Fatalf("at %s", is.at)
	}
	now = now.Add(2 * time.Minute)
	e.waits("nat44", now)
	if done := escalates(e, now.Add(4*time.Second), calm, always, report.StepDownstream, "nat44"); !slices.Equal(done, []string{"26s nat44 full"}) {
		t.Errorf("after a restart %q", done)
	}
	for at := time.Duration(0); at <= calm; at += 2 * time.Second {
		e.waits("nat44", now.Add(time.Minute+at))
	}
	if len(e.open()) > 0 {
		t.Errorf("open %v", e.open())
	}
	e.waits("nat44", now)
}

// TestEscalationForgetsWhatItHasNotTried: what is wrong after a wait for something outside gets all
// the patience.
func TestEscalationForgetsWhatItHasNotTried(t *testing.T) {
	e, now := newEscalation(calm), time.Unix(1_000_000, 0)
	e.failing("routes", "wrong", report.StepDownstream, now)
	e.waits("routes", now.Add(2*time.Second))
	if done := escalates(e, now.Add(calm-2*time.Second), 2*calm-2*time.Second, always, report.StepDownstream, "routes"); !slices.Equal(done, []string{"30s routes downstream"}) {
		t.Errorf("%q", done)
	}
}

// TestEscalationKeepsItsBudgets whatever happens to the parts: no step is taken more often than its
// budget within its time, and none below the first.
func TestEscalationKeepsItsBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEscalation(calm)
		now := time.Unix(1_000_000, 0)
		taken := map[expense][]time.Time{}
		for range rapid.IntRange(1, 400).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "pause")) * time.Second)
			part := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "part")
			if rapid.IntRange(0, 9).Draw(t, "recovers") == 0 {
				e.recovered(part)
				continue
			}
			step := e.failing(part, "refused", report.StepDownstream, now)
			if step == report.NoStep || step == report.StepExit {
				continue
			}
			if step < report.StepDownstream {
				t.Fatalf("took %s", step)
			}
			of := expense{step: step}
			if step == report.StepDownstream {
				of.part = part
			}
			taken[of] = append(taken[of], now)
			b := budgets()[step]
			if n := len(taken[of]); n > b.most && taken[of][n-1].Sub(taken[of][n-1-b.most]) < b.within {
				t.Fatalf("%s of %q taken more than %d times in %s", step, of.part, b.most, b.within)
			}
		}
	})
}
