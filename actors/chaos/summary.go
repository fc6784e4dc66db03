package chaos

import (
	"fmt"
	"hash"
	"hash/fnv"
	"sync"
)

// summary makes the report of a campaign from results that come in any order. It keeps of each result what the report says, and the plan of those
// only that failed and are named. All methods are safe for concurrent use.
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

// add takes what Run returned for a seed: a result or an error. Every seed from the first on must be added once, in any order.
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
