package health

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const calm = 30 * time.Second

// climbs lets parts be ill for a time, looking every two seconds as the healer does, and lists what was done: "12m30s nat44 full".
func climbs(l *ladder, from time.Time, lasts time.Duration, reason func(part string, at time.Duration) string, lowest rung, parts ...string) (done []string) {
	for at := time.Duration(0); at <= lasts; at += 2 * time.Second {
		for _, part := range parts {
			why := reason(part, at)
			if why == "" {
				l.well(part)
				continue
			}
			if r := l.ill(part, why, lowest, from.Add(at)); r != noRung {
				done = append(done, fmt.Sprintf("%s %s %s", at, part, r))
			}
		}
	}
	return done
}

func always(string, time.Duration) string { return "refused" }

func TestLadder(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		play func(l *ladder) []string
		want []string
	}{
		"what gets well by itself is left alone": {
			play: func(l *ladder) []string {
				return climbs(l, now, time.Hour, func(_ string, at time.Duration) string {
					return map[bool]string{true: "refused"}[at%time.Minute < calm-2*time.Second]
				}, rungDownstream, "nat44")
			},
		},
		"what does not climbs all the way": {
			play: func(l *ladder) []string { return climbs(l, now, 5*time.Minute, always, rungDownstream, "nat44") },
			want: []string{
				"30s nat44 downstream", "1m0s nat44 downstream", "1m30s nat44 downstream", "2m0s nat44 full", "2m30s nat44 full", "3m0s nat44 full",
				"3m30s nat44 subtree", "4m0s nat44 subtree", "4m30s nat44 exit", "5m0s nat44 exit",
			},
		},
		"who does not listen is not asked": {
			play: func(l *ladder) []string { return climbs(l, now, 2*time.Minute, always, rungSubtree, "nat44") },
			want: []string{"30s nat44 subtree", "1m0s nat44 subtree", "1m30s nat44 exit", "2m0s nat44 exit"},
		},
		"work that goes on is not disturbed": {
			play: func(l *ladder) []string {
				return climbs(l, now, 4*time.Minute, func(_ string, at time.Duration) string {
					return fmt.Sprintf("%d rows are being programmed", 1000-at/time.Second)
				},
					rungDownstream, "nat44")
			},
		},
		"but not for ever": {
			play: func(l *ladder) []string {
				return climbs(l, now, 6*time.Minute, func(_ string, at time.Duration) string {
					return fmt.Sprintf("%d rows are being programmed", at/time.Second)
				},
					rungDownstream, "nat44")
			},
			want: []string{"5m28s nat44 downstream", "5m58s nat44 downstream"},
		},
		"two parts have one budget for what costs everybody": {
			play: func(l *ladder) []string { return climbs(l, now, 4*time.Minute, always, rungFull, "nat44", "routes") },
			want: []string{
				"30s nat44 full", "1m0s nat44 full", "1m30s nat44 full", "2m0s nat44 subtree", "2m30s nat44 subtree", "3m0s nat44 exit", "3m30s nat44 exit",
				"4m0s nat44 exit",
			},
		},
		"a new illness climbs faster when the budget is spent, and slowly again later": {
			play: func(l *ladder) []string {
				done := climbs(l, now, 90*time.Second, always, rungDownstream, "nat44")
				l.well("nat44")
				done = append(done, climbs(l, now.Add(3*time.Minute), calm, always, rungDownstream, "nat44")...)
				l.well("nat44")
				return append(done, climbs(l, now.Add(time.Hour), calm, always, rungDownstream, "nat44")...)
			},
			want: []string{"30s nat44 downstream", "1m0s nat44 downstream", "1m30s nat44 downstream", "30s nat44 full", "30s nat44 downstream"},
		},
		"time in which nobody could do anything does not count": {
			play: func(l *ladder) []string {
				done := climbs(l, now, 10*time.Second, always, rungDownstream, "nat44")
				l.slept(time.Minute)
				return append(done, climbs(l, now.Add(70*time.Second), calm, always, rungDownstream, "nat44")...)
			},
			want: []string{"20s nat44 downstream"},
		},
	} {
		if got := tt.play(newLadder(calm)); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, tt.want)
		}
	}
}

// TestLadderIsNotFooledByARestart: whoever was restarted waits for others at first. That ends no illness, but a VPP that stays away does.
func TestLadderIsNotFooledByARestart(t *testing.T) {
	l, now := newLadder(calm), time.Unix(1_000_000, 0)
	_ = climbs(l, now, 2*time.Minute, always, rungDownstream, "nat44")
	if ill := l.cases["nat44"]; ill.at != rungFull {
		t.Fatalf("at %s", ill.at)
	}
	now = now.Add(2 * time.Minute)
	l.outside("nat44", now)
	if done := climbs(l, now.Add(4*time.Second), calm, always, rungDownstream, "nat44"); !slices.Equal(done, []string{"26s nat44 full"}) {
		t.Errorf("after a restart %q", done)
	}
	for at := time.Duration(0); at <= calm; at += 2 * time.Second {
		l.outside("nat44", now.Add(time.Minute+at))
	}
	if len(l.open()) > 0 {
		t.Errorf("open %v", l.open())
	}
	l.outside("nat44", now)
}

// TestLadderKeepsItsBudgets whatever happens to whom: no rung is taken more often than its budget within its time, and none below the first.
func TestLadderKeepsItsBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLadder(calm)
		now := time.Unix(1_000_000, 0)
		taken := map[spending][]time.Time{}
		for range rapid.IntRange(1, 400).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "pause")) * time.Second)
			part := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "part")
			if rapid.IntRange(0, 9).Draw(t, "well") == 0 {
				l.well(part)
				continue
			}
			r := l.ill(part, "refused", rungDownstream, now)
			if r == noRung || r == rungExit {
				continue
			}
			if r < rungDownstream {
				t.Fatalf("took %s", r)
			}
			of := spending{rung: r}
			if r == rungDownstream {
				of.part = part
			}
			taken[of] = append(taken[of], now)
			b := budgets()[r]
			if n := len(taken[of]); n > b.most && taken[of][n-1].Sub(taken[of][n-1-b.most]) < b.within {
				t.Fatalf("%s of %q taken more than %d times in %s", r, of.part, b.most, b.within)
			}
		}
	})
}
