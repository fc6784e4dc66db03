package chaos

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
)

// TestSummaryInAnyOrder: the report does not depend on the order in which seeds end, and names the
// first failures and the first error.
func TestSummaryInAnyOrder(t *testing.T) {
	const first, seeds = 100, 60
	play := func(order func(i int) int, broken ...uint64) (*Report, error) {
		s := newSummary(first)
		for i := range seeds {
			seed := uint64(first + order(i))
			r := &Result{
				Seed: seed, Plan: NewPlan(seed, true), Hash: fmt.Sprintf("%016x", seed), Steps: int(seed), Writes: 2, Reads: 3,
				Converged: time.Duration(seed%7) * time.Second, Struck: Counts{"panic": 1, fmt.Sprint("odd", seed%2): 1},
			}
			if seed%2 == 0 {
				r.Violations = []string{"I1"}
			}
			var err error
			for _, b := range broken {
				if seed == b {
					r, err = nil, errors.New("broken")
				}
			}
			s.add(seed, r, err)
		}
		return s.done()
	}
	orders := map[string]func(i int) int{
		"ascending": func(i int) int { return i }, "descending": func(i int) int { return seeds - 1 - i },
		"mixed": func(i int) int { return i * 7 % seeds },
	}
	want, err := play(orders["ascending"])
	if err != nil {
		t.Fatal(err)
	}
	if want.Seeds != seeds || want.Failed != seeds/2 || want.Writes != 2*seeds || want.Reads != 3*seeds || want.Slowest != 6*time.Second ||
		want.Struck["panic"] != seeds || want.Struck["odd1"] != seeds/2 || want.Steps != seeds*(2*first+seeds-1)/2 {
		t.Errorf("report %+v", want)
	}
	if len(want.Failures) != MaxFailures {
		t.Errorf("%d failures are named", len(want.Failures))
	}
	for i, f := range want.Failures {
		if f.Seed != uint64(first+2*i) || len(f.Plan.Steps) == 0 {
			t.Errorf("failure %d is seed %d with %d steps", i, f.Seed, len(f.Plan.Steps))
		}
	}
	for name, order := range orders {
		got, err := play(order)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
		if report, err := play(order, 130, 107, 159); report != nil || err == nil || err.Error() != "seed 107: broken" {
			t.Errorf("%s, with seeds that cannot be played: %v, %v", name, report, err)
		}
	}
}

// TestSummaryKeepsNoPlan: the summary drops the plan of a seed that ended well, also while the seed
// waits to be counted; it keeps the plan of a failure.
func TestSummaryKeepsNoPlan(t *testing.T) {
	const seeds = 3 * MaxFailures
	s := newSummary(0)
	var passed, failed []weak.Pointer[Step]
	for seed := uint64(seeds - 1); seed > 0; seed-- { // without seed 0 none is counted
		r := &Result{Seed: seed, Plan: NewPlan(seed, true)}
		if step := weak.Make(&r.Plan.Steps[0]); seed%2 == 0 {
			passed = append(passed, step)
		} else {
			r.Violations = []string{"I1"}
			failed = append(failed, step)
		}
		s.add(seed, r, nil)
	}
	goruntime.GC()
	goruntime.GC()
	if kept := inMemory(passed); kept > 1 { // one plan may be left on the stack
		t.Errorf("%d of %d plans that passed are kept", kept, len(passed))
	}
	if kept := inMemory(failed); kept != len(failed) {
		t.Errorf("%d of %d plans that failed are kept until it is known which are the first", kept, len(failed))
	}
	s.add(0, &Result{}, nil)
	goruntime.GC()
	if kept := inMemory(failed); kept < MaxFailures || kept > MaxFailures+1 {
		t.Errorf("%d plans that failed are kept, want %d", kept, MaxFailures)
	}
	if report, err := s.done(); err != nil || report.Seeds != seeds {
		t.Errorf("%v, %v", report, err)
	}
}

// inMemory counts the steps that the collector has not freed.
func inMemory(steps []weak.Pointer[Step]) (n int) {
	for _, step := range steps {
		if step.Value() != nil {
			n++
		}
	}
	return n
}

// TestCampaignDoesNotGrow: the memory in use does not grow with the number of seeds.
func TestCampaignDoesNotGrow(t *testing.T) {
	// bytes for each seed; a plan has 18 kB, a world megabytes
	const few, many, most = 4, 12, 6 << 10
	played, after := 0, map[int]uint64{}
	report, err := Campaign(t.Context(), Options{Seeds: many + 1, Swarm: true, Workers: 1, Progress: func(*Result) {
		if played++; played == few+1 || played == many+1 { // the last result is still in use
			goruntime.GC()
			goruntime.GC() // pools are emptied in two steps
			var stats goruntime.MemStats
			goruntime.ReadMemStats(&stats)
			after[played-1] = stats.HeapAlloc
		}
	}})
	if err != nil || report.Seeds != many+1 {
		t.Fatal(report, err)
	}
	growth := int64(after[many]) - int64(after[few])
	t.Logf("%d bytes after %d seeds, %d after %d: %d for each", after[few], few, after[many], many, growth/(many-few))
	if growth > most*(many-few) {
		t.Errorf("grows by %d bytes with each seed", growth/(many-few))
	}
}
