package chaos

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	seeds        = flag.Int("seeds", 100/slow, "how many seeds are played; CI plays 300, troupe chaos simulate any number")
	firstFailure = flag.Bool("first-failure", false, "stop at the first seed that fails")
)

// TestSeeds: whatever happens, everything is well again in the end.
func TestSeeds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{Seeds: *seeds, Swarm: true}
	if *firstFailure {
		o.Progress = func(r *Result) {
			if !r.OK() {
				cancel()
			}
		}
	}
	report, err := Campaign(ctx, o)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, f := range report.Failures {
		t.Errorf("seed %d: %s", f.Seed, strings.Join(f.Violations, "\n"))
	}
	t.Logf("%d messages, slowest %v, %v", report.Steps, report.Slowest, report.Struck)
	for name := range faultKinds() {
		if report.OK() && *seeds >= 100 && report.Struck[name] == 0 {
			t.Errorf("never happened: %s", name)
		}
	}
}

// TestPlanWithout: what Minimise leaves out.
func TestPlanWithout(t *testing.T) {
	plan := Plan{Steps: []Step{{What: "a"}, {What: "b"}, {What: "c"}}}
	if got := plan.without(1, 5); len(got.Steps) != 1 || len(plan.without(0, 1).Steps) != 2 || len(plan.Steps) != 3 {
		t.Errorf("%v, %v", got, plan)
	}
}

// TestSameSeedSameTrace: a seed decides everything (I14).
func TestSameSeedSameTrace(t *testing.T) {
	hashes := map[string]bool{}
	for range 5 {
		r, err := Run(7, NewPlan(7, true), nil)
		if err != nil {
			t.Fatal(err)
		}
		hashes[r.Hash] = true
	}
	if len(hashes) != 1 {
		t.Errorf("traces %v", hashes)
	}
}
