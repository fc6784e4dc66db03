package chaos

import (
	"context"
	"errors"
	"flag"
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small and short, so that most of a collection is overhead
	goleak.VerifyTestMain(m)
}

// allSingles is the number of seeds of each single fault in CI, enough for each to have its effect.
const allSingles = 20

var (
	seeds        = flag.Int("seeds", 10, "number of seeds; CI plays 300, troupe chaos simulate any number")
	singles      = flag.Int("singles", 2, "number of seeds of each single fault; CI plays 20")
	kills        = flag.Int("kills", 1, "number of messages at which each actor is killed in each part of its life; CI kills at 1000")
	only         = flag.String("only", "", "the single fault to play; empty = all")
	firstFailure = flag.Bool("first-failure", false, "stop at the first seed that fails")
)

// TestSeeds: after any plan all is well again in the end.
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
	if !report.OK() || report.Seeds < o.Seeds {
		return
	}
	planned := Counts{}
	for seed := range uint64(o.Seeds) {
		for _, step := range NewPlan(seed, o.Swarm).Steps {
			planned[step.What]++
		}
	}
	kinds := faultKinds()
	for _, name := range strikes() {
		if report.Struck[name] != planned[name] {
			t.Errorf("%s was planned %d times and happened %d times", name, planned[name], report.Struck[name])
		}
		const many = 20 // so many faults without an effect are not a coincidence
		if effect := kinds[name].effect; effect != "" && planned[name] >= many && report.Struck[effect] == 0 {
			t.Errorf("%s: %d times without an effect: %s", name, planned[name], effect)
		}
	}
}

// TestPlans: plans of quiet and of hot runs have every kind of fault, and each kind is missing in
// some swarm.
func TestPlans(t *testing.T) {
	const plans = 100
	kinds, left := map[bool]Counts{false: {}, true: {}}, Counts{}
	for seed := range uint64(plans) {
		plan := NewPlan(seed, true)
		drawn := map[string]bool{}
		for _, step := range plan.Steps {
			kinds[plan.Hot][step.What]++
			drawn[step.What] = true
		}
		for _, name := range strikes() {
			if !drawn[name] {
				left[name]++
			}
		}
	}
	for _, name := range strikes() {
		if kinds[false][name] == 0 || kinds[true][name] == 0 || left[name] == 0 {
			t.Errorf("%s: planned %d times in quiet runs, %d times in hot ones, missing in %d of %d", name, kinds[false][name], kinds[true][name], left[name], plans)
		}
	}
}

// TestPlanWithout: a plan without steps is a copy.
func TestPlanWithout(t *testing.T) {
	plan := Plan{Steps: []Step{{What: "a"}, {What: "b"}, {What: "c"}}}
	if got := plan.without(1, 5); len(got.Steps) != 1 || len(plan.without(0, 1).Steps) != 2 || len(plan.Steps) != 3 {
		t.Errorf("%v, %v", got, plan)
	}
}

// TestSameSeedSameTrace: the same seed has the same trace (I14).
func TestSameSeedSameTrace(t *testing.T) {
	hashes := map[string]bool{}
	for range 3 {
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
