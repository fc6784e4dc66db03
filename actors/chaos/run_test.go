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
	debug.SetGCPercent(400) // worlds are small and short: most of a collection would be overhead
	goleak.VerifyTestMain(m)
}

// allSingles is how often CI plays each single fault, so that each has its effect.
const allSingles = 20

var (
	seeds        = flag.Int("seeds", 30/slow, "how many seeds are played; CI plays 300, troupe chaos simulate any number")
	singles      = flag.Int("singles", 5, "how often each single fault is played; CI plays 20")
	only         = flag.String("only", "", "the single fault that is played; empty = each")
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
	if !report.OK() || report.Seeds < o.Seeds {
		return
	}
	planned := Counts{}
	for seed := range uint64(o.Seeds) {
		for _, step := range NewPlan(seed, o.Swarm).Steps {
			planned[step.What]++
		}
	}
	for name := range faultKinds() {
		if report.Struck[name] != planned[name] {
			t.Errorf("%s was planned %d times and happened %d times", name, planned[name], report.Struck[name])
		}
		const many = 20 // so often in vain is no chance
		if effect, known := effects()[name]; known && planned[name] >= many && report.Struck[effect] == 0 {
			t.Errorf("%s: %d times without an effect: %s", name, planned[name], effect)
		}
	}
}

// effects are what must come of faults that may hit no actor.
func effects() map[string]string {
	return map[string]string{
		"panics before messages": "panic before a message", "panics after messages": "panic after a message", "panics in starts": "panic in the start",
		"panics in stops": "panic in the stop", "poisoned service": "poisoned spec", "messages lost": "message lost", "one kind lost": "message lost", "messages twice": "message twice",
		"messages late": "message late", "VPP refuses": "operation refused", "table full": "operation refused", "answer lost": "operation unanswered",
		"connection cut": "operation unanswered", "rows stolen": "drift found", "routes stolen": "drift found", "settings stolen": "drift found", "overlay replaced": "overlay ended", "rows put by another": "row put",
		"services late": "message late", "rows given back": "row given back", "stuck actor": "actor held up",
		"agent restarts alone": "mirror served", "disk fails": "mirror not saved",
	}
}

// TestPlans: every kind of fault is planned, in quiet and in hot runs, and every swarm is another
// one.
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
		for name := range faultKinds() {
			if !drawn[name] {
				left[name]++
			}
		}
	}
	for name := range faultKinds() {
		if kinds[false][name] == 0 || kinds[true][name] == 0 || left[name] == 0 {
			t.Errorf("%s: planned %d times in quiet runs, %d times in hot ones, missing in %d of %d", name, kinds[false][name], kinds[true][name], left[name], plans)
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
