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

// Options choose what a Campaign plays.
type Options struct {
	// First and Seeds are the seeds: First, First+1, ... First+Seeds-1.
	First uint64
	Seeds int
	// Swarm lets every seed choose which kinds of faults there are; without it there are all in
	// every run.
	Swarm bool
	// Workers is how many runs go on side by side; 0 = one for each processor.
	Workers int
	// Progress is told every result, in no order, from several goroutines; nil = it is not
	// reported.
	Progress func(*Result)
}

// Report sums up a Campaign.
type Report struct {
	// Seeds is how many were played, Failed how many of them broke an invariant.
	Seeds  int `json:"seeds"`
	Failed int `json:"failed"`
	// Failures are the first that failed, ordered by seed, at most MaxFailures.
	Failures []*Result `json:"failures"`
	// Steps is the number of messages that were handled, Struck counts the faults that struck.
	Steps  int    `json:"steps"`
	Struck Counts `json:"struck"`
	// Slowest is the longest virtual time that a run needed until all was well after the last
	// fault.
	Slowest time.Duration `json:"slowest"`
	// Writes and Reads are what VPP was asked for.
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Hash identifies all traces together: same seeds, same hash.
	Hash string `json:"hash"`
}

// OK reports whether every seed ended well.
func (r *Report) OK() bool { return r.Failed == 0 }

// MaxFailures is how many failures a Report names.
const MaxFailures = 20

// Campaign plays many seeds. It returns what was done when ctx ends before that, with the error of
// ctx. What it keeps in memory does not grow with the number of seeds.
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

// summary makes the report of a campaign from results that come in any order. It keeps of each
// result what the report says, and the plan of those only that failed and are named. All methods
// are safe for concurrent use.
type summary struct {
	mu     sync.Mutex // guards the following
	next   uint64     // the seed whose turn it is
	early  map[uint64]outcome
	hash   hash.Hash64 // of the hashes of all traces, in the order of their seeds
	report Report
	err    error // of the first seed that could not be played
}

// outcome is what Run returned for a seed that has to wait for its turn.
type outcome struct {
	result Result
	err    error
}

func newSummary(first uint64) *summary {
	return &summary{next: first, early: map[uint64]outcome{}, hash: fnv.New64a(), report: Report{Failures: []*Result{}, Struck: Counts{}}}
}

// add takes what Run returned for a seed: a result or an error. Every seed from the first on must
// be added once, in any order.
func (s *summary) add(seed uint64, result *Result, err error) {
	o := outcome{err: err}
	if err == nil {
		if o.result = *result; result.OK() {
			o.result.Plan = Plan{} // by far the largest part of it
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

// count adds the seed whose turn it is. Lock must be held.
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

// done returns the report of all seeds that were added.
func (s *summary) done() (*Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.report.Hash = fmt.Sprintf("%016x", s.hash.Sum64())
	return &s.report, nil
}
