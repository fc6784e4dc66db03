package chaos

import (
	"context"
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
	// Progress is told every result, in no order, from several goroutines; nil = it is not reported.
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

// Campaign plays many seeds. It returns what was done when ctx ends before that, with the error of ctx. What it keeps in memory does not grow with
// the number of seeds.
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
