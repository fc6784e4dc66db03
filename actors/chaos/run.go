package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Times of a run, in virtual time.
const (
	// time to be well after the last fault: quarantine and back-off last 30 s
	patience = 90 * time.Second
	tick     = 50 * time.Millisecond // interval of checks until all is well
	// then draining endpoints have gone: VPP forgets a client that only sent a SYN after 4
	// minutes
	lastSession = 5 * time.Minute
	stillFor    = 3 * time.Minute // longer than every interval of the agent
	// then the sessions of ended connections to endpoints that do not serve are deleted
	swept = 40 * time.Second
)

// Result is the result of one seed.
type Result struct {
	// Seed and Plan repeat the run.
	Seed uint64 `json:"seed"`
	Plan Plan   `json:"-"`
	// Violations are one line each, with the name of the invariant (I1 to I20); nil = all held.
	Violations []string `json:"violations,omitempty"`
	// Hash identifies the trace.
	Hash string `json:"hash"`
	// Steps is the number of messages that actors handled.
	Steps int `json:"steps"`
	// Converged is the virtual time from the end of the last fault until all was well.
	Converged time.Duration `json:"converged"`
	// Struck counts the faults and their effects.
	Struck Counts `json:"struck"`
	// Writes and Reads count the changes of VPP and the reads of all rows.
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
}

// OK reports whether all invariants held.
func (r *Result) OK() bool { return len(r.Violations) == 0 }

// Run plays the plan of one seed; trace, unless nil, gets every step. An error means that the
// simulation could not start.
func Run(seed uint64, plan Plan, trace func(runtime.SimStep)) (*Result, error) {
	w, err := newWorld(seed, trace)
	if err != nil {
		return nil, err
	}
	result := &Result{Seed: seed, Plan: plan}
	w.finish(result, w.play(plan, result))
	return result, nil
}

// finish stops the world and completes the result of a run that ended with err.
func (w *world) finish(result *Result, err error) {
	if stopped := w.stop(); stopped != nil {
		result.Violations = append(result.Violations, "I9: "+stopped.Error())
	}
	if err != nil {
		result.Violations = append(result.Violations, err.Error())
	}
	result.Violations = append(result.Violations, w.broken...)
	result.Hash, result.Steps = fmt.Sprintf("%016x", w.sim.TraceHash()), w.sim.Steps()
	result.Struck, result.Writes, result.Reads = w.injector.counts, w.vpp.Writes, w.vpp.Reads
}

// ended is the end of the last part of a fault that ends by itself: a slow list is there.
func (w *world) ended(over time.Time) time.Time {
	return latest(over, w.source.answered, w.documents.read)
}

// latest is the last of several times.
func latest(first time.Time, others ...time.Time) time.Time {
	return slices.MaxFunc(append(others, first), time.Time.Compare)
}

// play is a run between start and shutdown. An error means that the actors send each other messages
// without end.
func (w *world) play(plan Plan, result *Result) error {
	start := w.sim.Now()
	kinds := faultKinds()
	w.observed.watch(w)
	for _, step := range plan.Steps {
		if err := w.sim.Run(start.Add(step.At)); err != nil {
			return err
		}
		dice := rand.New(rand.NewPCG(step.Dice, 0))
		switch step.What {
		case change:
			w.cluster.mutate(dice, plan.Hot)
			continue
		case age:
			w.observed.grow(w.cluster)
			continue
		case roll:
			w.observed.roll(w.cluster, dice)
			continue
		}
		w.injector.count(step.What)
		kinds[step.What].strike(w, dice)
	}
	if err := w.sim.Run(start.Add(troubles)); err != nil {
		return err
	}
	if err := w.sim.RunFor(10 * time.Second); err != nil { // the last faults end by themselves
		return err
	}
	if err := w.heal(); err != nil {
		return err
	}
	wrong, err := w.converge(result)
	if err != nil || len(wrong) > 0 {
		result.Violations = wrong
		return err
	}
	most := w.injector.counts.within()
	if w.unseen() {
		most = max(most, driftCheck)
	}
	if result.Converged > most {
		w.breach("I1: %v until all was well, want at most %v", result.Converged, most)
	}
	if wrong, err = w.still(); err == nil && len(wrong) == 0 {
		wrong = w.attachDrill()
	}
	if err == nil && len(wrong) == 0 {
		wrong, err = w.drills(rand.New(rand.NewPCG(result.Seed, 2)))
	}
	result.Violations = wrong
	return err
}

// converge waits until all is well (I1). The time starts with the end of the last part of a fault.
func (w *world) converge(result *Result) (wrong []string, err error) {
	healed := w.sim.Now()
	for {
		if wrong = w.wrong(); len(wrong) == 0 {
			result.Converged = max(w.sim.Now().Sub(w.ended(healed)), 0)
			return nil, nil
		}
		if w.sim.Now().Sub(healed) > patience {
			return append(wrong, w.journal()...), nil
		}
		if err := w.sim.RunFor(tick); err != nil {
			return wrong, err
		}
	}
}

// still checks that the agent is at rest (I1, I15): it writes and repairs nothing, and stays ready.
func (w *world) still() (wrong []string, err error) {
	if err := w.sim.RunFor(swept); err != nil {
		return nil, err
	}
	w.observed.rested = true
	if err := w.sim.RunFor(lastSession - swept); err != nil {
		return nil, err
	}
	w.observed.rested = false // drills stop the actors that delete sessions
	writes, since := w.vpp.Writes, w.deps.Readiness.Load().Since
	reads := w.vpp.Reads - w.vpp.Checks
	w.remedies.over = true
	if err := w.sim.RunFor(stillFor); err != nil {
		return nil, err
	}
	if n := w.vpp.Writes - writes; n > 0 {
		wrong = append(append(wrong, fmt.Sprintf("I1: %d changes of VPP although nothing changed", n)), w.journal()...)
	}
	if n := w.vpp.Reads - w.vpp.Checks - reads; n > 0 {
		wrong = append(wrong, fmt.Sprintf("I15: %d reads of VPP without a reason", n))
	}
	if report := w.deps.Readiness.Load(); !report.Ready || !report.Since.Equal(since) {
		wrong = append(wrong, "I1: readiness flapped although nothing changed: "+report.Reasons())
	}
	return slices.Concat(wrong, w.wrong(), w.wrongPackets()), nil
}

// drills kills one actor after the other in a world at rest (I4, I5). No failure may cost a change
// of VPP; only a renderer that gives roles may read the rows, once.
func (w *world) drills(r *rand.Rand) (wrong []string, err error) {
	type drill struct {
		path  string
		reads int
	}
	all := []drill{{address.Registry, 0}, {address.Introspect, 0}}
	for _, renderer := range w.deps.Renderers() {
		d := drill{address.Renderer(renderer), 0}
		if slices.Contains(w.deps.RoleGivers(), renderer) {
			d.reads = 1
		}
		all = append(all, d)
	}
	if keys := w.cluster.keys(); len(keys) > 0 {
		all = append(all, drill{address.Service(keys[r.IntN(len(keys))]), 0})
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, d := range all {
		if err := w.sim.RunFor(70 * time.Second); err != nil { // past the periodic reads
			return nil, err
		}
		writes, reads := w.vpp.Writes, w.vpp.Reads-w.vpp.Checks
		if err := w.sys.Kill(d.path); err != nil {
			return []string{"I8: " + err.Error()}, nil
		}
		if err := w.sim.RunFor(5 * time.Second); err != nil {
			return nil, err
		}
		if w.vpp.Writes != writes {
			wrong = append(wrong, fmt.Sprintf("I4: the failure of %s cost %d changes of VPP", d.path, w.vpp.Writes-writes))
		}
		if n := w.vpp.Reads - w.vpp.Checks - reads; n > d.reads {
			wrong = append(wrong, fmt.Sprintf("I4: the failure of %s cost %d reads of VPP, want %d", d.path, n, d.reads))
		}
	}
	return slices.Concat(wrong, w.wrong()), nil
}
