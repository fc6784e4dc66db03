package apitest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// chaos holds the faults of a Troupe. They last until they are stopped; a fault without a duration
// ends at once.
type chaos struct {
	records []live.Record // the oldest first
	run     *live.RunStatus
}

// faults are the faults with their outcomes; the caller holds mu.
func (t *Troupe) faults() *live.Status {
	s := &live.Status{Enabled: true, Run: t.chaos.run, Records: slices.Clone(t.chaos.records)}
	slices.Reverse(s.Records)
	for i := range s.Records {
		if s.Records[i].State == live.StateActive {
			s.Active++
		}
	}
	return s
}

// Inject satisfies api.Controller.
func (t *Troupe) Inject(_ context.Context, who string, f live.Fault) (*live.Record, error) {
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case f.Actor == "agent":
		return nil, fmt.Errorf("%w: the root actor is exempt", api.ErrForbidden)
	case t.find(f.Actor) == nil:
		return nil, fmt.Errorf("actor %s: %w", f.Actor, api.ErrNotFound)
	}
	r := live.Record{ID: uint64(len(t.chaos.records) + 1), Who: who, What: f, Actor: f.Actor, Began: Began, State: live.StateActive}
	if !live.Lookup(f.Kind).Lasts() {
		a := t.find(f.Actor)
		a.Failures, a.Restarts, a.Incarnation, a.LastFailure = a.Failures+1, a.Restarts+1, a.Incarnation+1, "killed"
		r.State, r.Ended, r.EndedBy, r.Struck = live.StateWell, Began.Add(time.Second), "done", 1
		r.Outcome = "well again after 1ms; VPP: 0 writes, 0 row reads, holds what it should"
	}
	t.chaos.records = append(t.chaos.records, r)
	t.record(api.Event{Kind: "drill", Actor: f.Actor, Text: string(f.Kind)})
	return &r, nil
}

// StartDrill satisfies api.Controller; the drill is over at once, and has passed unless a service
// has failed.
func (t *Troupe) StartDrill(_ context.Context, who string, plan live.Plan) (*live.RunStatus, error) {
	if err := plan.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	run := &live.RunStatus{ID: 1, Name: plan.Name, Who: who, Seed: 7, Began: Began, Ended: Began.Add(time.Minute), State: live.RunPassed, Faults: 3}
	run.Invariants = []live.Invariant{{Name: "I2", What: "every service is in sync", State: live.Held}}
	for _, s := range t.services {
		if s.State == api.ServiceFailed {
			run.State, run.Reason = live.RunViolated, "I2: a service has failed"
			run.Invariants[0].State, run.Invariants[0].Detail = live.Violated, "a service has failed"
		}
	}
	t.chaos.run = run
	return run, nil
}

// StopChaos satisfies api.Controller.
func (t *Troupe) StopChaos(_ context.Context, who string) (stopped int, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.chaos.records {
		if r := &t.chaos.records[i]; r.State == live.StateActive {
			r.State, r.Ended, r.EndedBy = live.StateWell, Began.Add(time.Second), "stopped by "+who
			stopped++
		}
	}
	return stopped, nil
}
