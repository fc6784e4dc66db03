package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// RunState is the state of a run.
type RunState string

// The states of a run, in their order.
const (
	// RunActive: the run injects faults.
	RunActive RunState = "running"
	// RunConverging: all faults have ended; the run waits until the agent is well again.
	RunConverging RunState = "converging"
	// RunPassed: every invariant that was evaluated holds.
	RunPassed RunState = "passed"
	// RunViolated: an invariant does not hold.
	RunViolated RunState = "violated"
	// RunStopped: it was stopped early; no invariant was violated until then.
	RunStopped RunState = "stopped"
)

// Over reports whether the run has ended.
func (s RunState) Over() bool { return s != RunActive && s != RunConverging }

// RunStatus describes a run.
type RunStatus struct {
	// The run writes these fields under the lock of Live; callers get copies.

	// ID counts the runs of this agent, from 1.
	ID uint64 `json:"id"`
	// Name is the name of the plan; Who started the run.
	Name string `json:"name,omitempty"`
	Who  string `json:"who"`
	// Seed of the random choices; a run with the same seed draws the same faults.
	Seed uint64 `json:"seed"`
	// Began is the start, Until the time of the last injection, Ended the end.
	Began time.Time `json:"began"`
	Until time.Time `json:"until"`
	Ended time.Time `json:"ended,omitzero"`
	// State of the run; Reason is who stopped it, or the first violation.
	State  RunState `json:"state"`
	Reason string   `json:"reason,omitempty"`
	// Faults counts the injected faults, Skipped the ones that limits or a lack of targets
	// prevented.
	Faults  int `json:"faults"`
	Skipped int `json:"skipped"`
	// VPPWrites and VPPReads count the changes of VPP's configuration and the reads of all rows
	// during the run, without drift checks.
	VPPWrites uint64 `json:"vppWrites"`
	VPPReads  uint64 `json:"vppReads"`
	// Converged is the time from the last fault until the agent was well.
	Converged Duration `json:"converged,omitempty"`
	// Invariants are in the order of their names.
	Invariants []Invariant `json:"invariants"`
}

// Intervals and timeouts of a run.
const (
	runTick    = 100 * time.Millisecond
	sampleTick = time.Second
	readTick   = 5 * time.Second
	restTick   = 500 * time.Millisecond
	lookFor    = 3 * time.Second // timeout of a sample: an actor that hangs must not stop the drill
)

// run is an active drill.
type run struct {
	// Live.mu guards these fields.
	RunStatus
	who     string        // the client that stopped the run; "" = it was not stopped
	stopped chan struct{} // closed by halt

	// Only the goroutine of drill touches these fields; plan does not change.
	plan    Plan
	rand    *rand.Rand
	judge   *judge
	at      []bool    // done, for steps with a time
	next    time.Time // of the next random fault
	read    time.Time // of the last read-back
	sampled time.Time

	mine []uint64 // IDs of faults whose record the judge has not seen; guarded by Live.mu
}

// status returns a copy; the lock is held.
func (r *run) status() *RunStatus {
	s := r.RunStatus
	s.Invariants = append([]Invariant(nil), s.Invariants...)
	return &s
}

// halt ends the run early and reports whether it was active; the lock is held.
func (r *run) halt(who string) bool {
	if r.State.Over() || r.who != "" {
		return false
	}
	r.who = who
	close(r.stopped)
	return true
}

// Start begins a drill. It refuses a second one at the same time, and an agent with a problem,
// which the verdict would be blamed on.
func (l *Live) Start(ctx context.Context, who string, plan Plan) (RunStatus, error) {
	if err := plan.Check(); err != nil {
		return RunStatus{}, err
	}
	plan = plan.complete()
	first := l.sample(ctx, true, readFor)
	if problem := well(first); problem != "" {
		return RunStatus{}, fmt.Errorf("run: %w", &reasoned{ErrBusy, "the agent is not well before the drill: " + problem})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return RunStatus{}, fmt.Errorf("run: %w", ErrClosed)
	case l.run != nil && !l.run.State.Over():
		return RunStatus{}, fmt.Errorf("run: %w", &reasoned{ErrBusy, fmt.Sprintf("run %d is active", l.run.ID)})
	}
	l.runs++
	now := time.Now()
	r := &run{
		RunStatus: RunStatus{
			ID: l.runs, Name: plan.Name, Who: who, Seed: plan.Seed, Began: now, Until: now.Add(time.Duration(plan.For)), State: RunActive,
		},
		plan: plan, rand: rand.New(rand.NewPCG(plan.Seed, 0)), judge: newJudge(first), stopped: make(chan struct{}),
		at: make([]bool, len(plan.Faults)), sampled: now, read: now,
	}
	r.next = now.Add(plan.pause(r.rand))
	r.Invariants = r.judge.verdicts()
	l.run = r
	l.cfg.Log.Warn("chaos run started", "run", r.ID, "plan", r.Name, "seed", r.Seed, "until", r.Until, "who", who)
	l.journal(address.RootName, r.object(), fmt.Sprintf("run %d of plan %q for %v, seed %d, by %s", r.ID, r.Name, plan.For, r.Seed, who), "")
	l.tasks.Go(func() { l.drill(r) })
	return *r.status(), nil
}

func (r *run) object() string { return fmt.Sprintf("chaos/run/%d", r.ID) }

// drill injects the faults of a run and waits for the end, in a goroutine of its own.
func (l *Live) drill(r *run) {
	tick := time.NewTicker(runTick)
	defer tick.Stop()
	for l.goesOn(r) {
		select {
		case <-tick.C:
		case <-r.stopped:
			continue
		case <-l.ctx.Done():
			continue
		}
		now := time.Now()
		l.strike(r, now)
		if now.Sub(r.sampled) >= sampleTick {
			l.look(r, now)
		}
	}
	l.mu.Lock()
	r.State = RunConverging
	for _, a := range l.active {
		if a.record.Run == r.ID {
			l.end(a, "the end of the run")
		}
	}
	l.mu.Unlock()
	l.converge(r)
}

// goesOn reports whether the run injects further faults.
func (l *Live) goesOn(r *run) bool {
	select {
	case <-r.stopped:
		return false
	case <-l.ctx.Done():
		return false
	default:
		return time.Now().Before(r.Until) && (r.plan.KeepGoing || r.judge.violated() == nil)
	}
}

// strike injects the faults that are due, within the blast radius. Steps with a time come first,
// because random ones can wait.
func (l *Live) strike(r *run, now time.Time) {
	for i := range r.plan.Faults {
		if s := &r.plan.Faults[i]; s.At > 0 && !r.at[i] && now.Sub(r.Began) >= time.Duration(s.At) && l.room(r) {
			r.at[i] = true
			l.hit(r, s)
		}
	}
	if now.Before(r.next) {
		return
	}
	step := r.plan.choose(r.rand)
	if step == nil || !l.room(r) {
		return // the next tick tries again
	}
	r.next = now.Add(r.plan.pause(r.rand))
	l.hit(r, step)
}

// room reports whether the blast radius allows one more fault.
func (l *Live) room(r *run) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.active)+l.healing < r.plan.BlastRadius
}

// hit injects one step.
func (l *Live) hit(r *run, s *Step) {
	f := s.Fault
	if s.Of != "" {
		f.Actor = l.draw(r, s.Of)
	}
	var record Record
	err := ErrNoActor
	if f.Actor != "" || s.Of == "" {
		record, err = l.inject(l.ctx, fmt.Sprintf("run %d, %s", r.ID, r.Who), f, r.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		r.Skipped++
		return
	}
	r.Faults++
	r.mine = append(r.mine, record.ID)
}

// draw chooses a healthy actor of a kind; "" = there is none. Snapshots are ordered by path, so
// that the seed alone decides.
func (l *Live) draw(r *run, kind string) string {
	var healthy []string
	supervisors := l.supervisors()
	for _, a := range l.system.Snapshot() {
		if a.Kind == kind && !supervisors[a.Path] && (a.State == runtime.StateIdle || a.State == runtime.StateRunning) && exempt(a.Path) == "" {
			healthy = append(healthy, a.Path)
		}
	}
	if len(healthy) == 0 {
		return ""
	}
	return healthy[r.rand.IntN(len(healthy))]
}

// look takes a sample and evaluates it.
func (l *Live) look(r *run, now time.Time) {
	read := now.Sub(r.read) >= readTick
	if read {
		r.read = now
	}
	s := l.sample(l.ctx, read, lookFor)
	r.sampled = time.Now()
	r.judge.take(s)
	l.judgeRecords(r, s)
	l.publish(r, s)
}

// judgeRecords evaluates the faults of service actors that have an outcome. With a blast radius of
// one, each was the only fault at its time.
func (l *Live) judgeRecords(r *run, s *sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []uint64
	for _, id := range r.mine {
		record := l.find(id)
		switch {
		case record == nil:
		case !record.Over():
			open = append(open, id)
		case address.Supervisor(record.Actor) != address.Services:
		case r.plan.BlastRadius > 1:
			r.judge.among()
		default:
			r.judge.alone(record, s.changes != r.judge.first.changes)
		}
	}
	r.mine = open
}

// find returns a record; the lock is held.
func (l *Live) find(id uint64) *Record {
	for _, r := range l.records {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// publish updates the status of the run.
func (l *Live) publish(r *run, s *sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Invariants = r.judge.verdicts()
	r.VPPWrites, r.VPPReads = s.usage.Writes-r.judge.first.usage.Writes, s.usage.RowReads-r.judge.first.usage.RowReads
}

// sample reads the state of the agent, and VPP if read is set. Readiness and changes are read
// before and after VPP: only if they are equal can the contents of VPP be held against readiness.
func (l *Live) sample(ctx context.Context, read bool, patience time.Duration) *sample {
	w := l.cfg.World
	reading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &sample{at: time.Now()}
	ready, _ := w.Readiness()
	changes := w.Changes()
	if read {
		operations, err := w.Diff(reading)
		s.read, s.operations = err == nil, operations
	}
	s.ready, s.reasons = w.Readiness()
	s.usage = w.Usage() // before the changes, which explain the writes in it
	s.changes = w.Changes()
	s.agreed = ready && s.ready && changes == s.changes
	ask, done := context.WithTimeout(ctx, askFor)
	defer done()
	if services, err := w.Services(ask); err == nil {
		s.services = append([]Service{}, services...)
	}
	s.actors, s.goroutines = l.system.Snapshot(), goruntime.NumGoroutine()
	return s
}

// converge waits until the agent is well or the time is over, and decides the verdict.
func (l *Live) converge(r *run) {
	tick := time.NewTicker(restTick)
	defer tick.Stop()
	began := time.Now()
	var last *sample
	for {
		last = l.sample(l.ctx, !l.watching(r), readFor)
		l.judgeRecords(r, last)
		if l.ctx.Err() != nil || time.Since(began) > time.Duration(r.plan.Converge) || !l.watching(r) && well(last) == "" {
			break
		}
		select {
		case <-tick.C:
		case <-l.ctx.Done():
		}
	}
	if l.ctx.Err() == nil {
		r.judge.final(last)
	}
	l.publish(r, last)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Ended, r.State = time.Now(), RunPassed
	r.Converged = Duration(r.Ended.Sub(began).Round(time.Millisecond))
	if r.who != "" {
		r.State, r.Reason = RunStopped, "stopped by "+r.who
	}
	problem := ""
	if v := r.judge.violated(); v != nil {
		r.State, r.Reason = RunViolated, v.Name+": "+v.Detail
		problem = r.Reason
	}
	text := fmt.Sprintf("run %d %s after %v: %d faults, %d skipped, VPP: %d writes, %d row reads",
		r.ID, r.State, r.Ended.Sub(r.Began).Round(time.Millisecond), r.Faults, r.Skipped, r.VPPWrites, r.VPPReads)
	l.cfg.Log.Warn("chaos run ended", "run", r.ID, "state", string(r.State), "faults", r.Faults, "reason", r.Reason)
	l.journal(address.RootName, r.object(), text, problem)
}

// watching reports whether outcomes of the run's faults are open.
func (l *Live) watching(r *run) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range r.mine {
		if record := l.find(id); record != nil && !record.Over() {
			return true
		}
	}
	return false
}
