package chaos

import (
	"context"
	"fmt"
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
	// Swarm lets every seed choose which kinds of faults there are; without it there are all in every run.
	Swarm bool
	// Workers is how many runs go on side by side; 0 = one for each processor.
	Workers int
	// Progress is told every result, in no order, from several goroutines; nil = nobody is.
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
	// Slowest is the longest virtual time that a run needed until all was well after the last fault.
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

// Campaign plays many seeds. It returns what was done when ctx ends before that, with the error of ctx.
func Campaign(ctx context.Context, o Options) (*Report, error) {
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	results := make([]*Result, o.Seeds)
	errs := make([]error, o.Seeds)
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				seed := o.First + uint64(i)
				results[i], errs[i] = Run(seed, NewPlan(seed, o.Swarm), nil)
				if o.Progress != nil && results[i] != nil {
					o.Progress(results[i])
				}
			}
		})
	}
feed:
	for i := range o.Seeds {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", o.First+uint64(i), err)
		}
	}
	return sum(results), ctx.Err()
}

// sum makes a report of results; those that are nil were not played.
func sum(results []*Result) *Report {
	report := &Report{Failures: []*Result{}, Struck: Counts{}}
	hash := fnv.New64a()
	for _, r := range results {
		if r == nil {
			continue
		}
		report.Seeds++
		report.Steps += r.Steps
		report.Writes += r.Writes
		report.Reads += r.Reads
		report.Slowest = max(report.Slowest, r.Converged)
		for name, n := range r.Struck {
			report.Struck[name] += n
		}
		_, _ = hash.Write([]byte(r.Hash)) // never fails
		if !r.OK() {
			if report.Failed++; len(report.Failures) < MaxFailures {
				report.Failures = append(report.Failures, r)
			}
		}
	}
	report.Hash = fmt.Sprintf("%016x", hash.Sum64())
	return report
}
