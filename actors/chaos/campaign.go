package chaos

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"runtime"
	"sync"
	"time"
)

// Options are the settings of a Campaign.
type Options struct {
	// First and Seeds are the seeds: First, First+1, ... First+Seeds-1.
	First uint64
	Seeds int
	// Swarm lets every seed choose its kinds of faults; without it every run has all kinds.
	Swarm bool
	// Workers is the number of runs at the same time; 0 = one for each processor.
	Workers int
	// Progress gets every result, in no order, from several goroutines; nil = results are not
	// reported.
	Progress func(*Result)
}

// Report sums up a Campaign.
type Report struct {
	// Seeds is the number of seeds that were played, Failed the number of them that broke an
	// invariant.
	Seeds  int `json:"seeds"`
	Failed int `json:"failed"`
	// Failures are the first failed seeds, ordered by seed, at most MaxFailures.
	Failures []*Result `json:"failures"`
	// Steps is the number of messages that actors handled; Struck counts the faults.
	Steps  int    `json:"steps"`
	Struck Counts `json:"struck"`
	// Slowest is the longest virtual time from the end of the last fault of a run until all was
	// well.
	Slowest time.Duration `json:"slowest"`
	// Writes and Reads count the changes of VPP and the reads of all rows.
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Hash identifies all traces together: the same seeds have the same hash.
	Hash string `json:"hash"`
}

// OK reports whether no seed broke an invariant.
func (r *Report) OK() bool { return r.Failed == 0 }

// MaxFailures is the number of failures that a Report has at most.
const MaxFailures = 20

// Campaign plays many seeds. When ctx ends first, it returns the report of the seeds so far and the
// error of ctx. Its memory does not grow with the number of seeds.
func Campaign(ctx context.Context, o Options) (*Report, error) {
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan uint64)
	sum := newSummary(o.First)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for seed := range next {
				result, err := Run(seed, NewPlan(seed, o.Swarm), nil)
				if o.Progress != nil && result != nil {
					o.Progress(result)
				}
				sum.add(seed, result, err)
			}
		})
	}
feed:
	for i := range uint64(o.Seeds) {
		select {
		case next <- o.First + i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	group.Wait()
	report, err := sum.done()
	if err != nil {
		return nil, err
	}
	return report, ctx.Err()
}

// summary makes the report of a campaign from results in any order. It keeps sums, and the plans of
// the failures in the report. All methods are safe for concurrent use.
type summary struct {
	mu     sync.Mutex         // guards the following
	next   uint64             // the seed that is counted next
	early  map[uint64]outcome // of seeds behind next
	hash   hash.Hash64        // of the hashes of all traces, in the order of their seeds
	report Report
	err    error // of the first seed that could not be played
}

// outcome is the answer of Run for one seed.
type outcome struct {
	result Result
	err    error
}

func newSummary(first uint64) *summary {
	return &summary{
		next: first, early: map[uint64]outcome{}, hash: fnv.New64a(), report: Report{Failures: []*Result{}, Struck: Counts{}},
	}
}

// add takes the answer of Run for a seed. Every seed from the first on must be added once, in any
// order. Seeds are counted in their order, so that the report does not depend on the workers.
func (s *summary) add(seed uint64, result *Result, err error) {
	o := outcome{err: err}
	if err == nil {
		if o.result = *result; result.OK() {
			o.result.Plan = Plan{} // the largest part of a result
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early[seed] = o
	for o, here := s.early[s.next]; here; o, here = s.early[s.next] {
		delete(s.early, s.next)
		s.count(s.next, o)
		s.next++
	}
}

// count adds the next seed to the report; the lock is held.
func (s *summary) count(seed uint64, o outcome) {
	if o.err != nil {
		if s.err == nil {
			s.err = fmt.Errorf("seed %d: %w", seed, o.err)
		}
		return
	}
	r, report := &o.result, &s.report
	report.Seeds++
	report.Steps += r.Steps
	report.Writes += r.Writes
	report.Reads += r.Reads
	report.Slowest = max(report.Slowest, r.Converged)
	for name, n := range r.Struck {
		report.Struck[name] += n
	}
	_, _ = s.hash.Write([]byte(r.Hash)) // never fails
	if !r.OK() {
		if report.Failed++; len(report.Failures) < MaxFailures {
			report.Failures = append(report.Failures, r)
		}
	}
}

// done returns the report of all seeds, or the first error.
func (s *summary) done() (*Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.report.Hash = fmt.Sprintf("%016x", s.hash.Sum64())
	return &s.report, nil
}
