package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// How long things may take, in virtual time.
const (
	// until everything is well again after the last fault: quarantine and back-off last 30 s
	patience = 90 * time.Second
	stillFor = 3 * time.Minute // then nothing may happen, for longer than every period
	tick     = 50 * time.Millisecond
	// then endpoints that drain have gone: VPP forgets clients that sent a SYN only after 4 minutes
	lastSession = 5 * time.Minute
)

// Result is what became of one seed.
type Result struct {
	// Seed and Plan repeat the run.
	Seed uint64 `json:"seed"`
	Plan Plan   `json:"-"`
	// Violations say what did not hold, each with the invariant (I1-I14) it belongs to; none is the
	// aim.
	Violations []string `json:"violations,omitempty"`
	// Hash identifies the trace.
	Hash string `json:"hash"`
	// Steps is the number of messages that were handled.
	Steps int `json:"steps"`
	// Converged is the virtual time from the end of the last fault until all was well.
	Converged time.Duration `json:"converged"`
	// Struck counts what happened.
	Struck Counts `json:"struck"`
	// Writes and Reads are what VPP was asked for.
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
}

// OK reports whether everything held.
func (r *Result) OK() bool { return len(r.Violations) == 0 }

// Run plays the plan of one seed. An error means that the simulation itself did not work.
func Run(seed uint64, plan Plan, trace func(runtime.SimStep)) (*Result, error) {
	w, err := newWorld(seed, trace)
	if err != nil {
		return nil, err
	}
	result := &Result{Seed: seed, Plan: plan}
	defer func() {
		result.Hash, result.Steps = fmt.Sprintf("%016x", w.sim.TraceHash()), w.sim.Steps()
		result.Struck, result.Writes, result.Reads = w.injector.counts, w.vpp.Writes, w.vpp.Reads
	}()
	err = w.play(plan, result)
	if stopped := w.stop(); stopped != nil {
		result.Violations = append(result.Violations, "I9: "+stopped.Error())
	}
	if err != nil {
		result.Violations = append(result.Violations, err.Error())
	}
	result.Violations = append(result.Violations, w.broken...)
	return result, nil
}

// play is a run between start and shutdown; an error means that the actors keep each other busy for
// ever.
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
		kinds[step.What](w, dice)
	}
	if err := w.sim.Run(start.Add(troubles)); err != nil {
		return err
	}
	if err := w.sim.RunFor(10 * time.Second); err != nil { // faults that last end by themselves
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
		most = max(most, slower()["rows stolen"].most)
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

// converge waits until all is well (I1). What lasts longer than the last fault is none of its time.
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

// still checks that nothing is left to do (I1, I10): nothing is written, the node stays ready.
func (w *world) still() (wrong []string, err error) {
	if err := w.sim.RunFor(lastSession); err != nil {
		return nil, err
	}
	writes, since := w.vpp.Writes, w.deps.Readiness.Load().Since
	reads := w.vpp.Reads - w.vpp.Checks
	w.remedies.over = true
	if err := w.sim.RunFor(stillFor); err != nil {
		return nil, err
	}
	if n := w.vpp.Writes - writes; n > 0 {
		wrong = append(append(wrong, fmt.Sprintf("I1: %d changes of VPP while nothing changed", n)), w.journal()...)
	}
	if n := w.vpp.Reads - w.vpp.Checks - reads; n > 0 {
		wrong = append(wrong, fmt.Sprintf("I15: %d reads of VPP for a reason while there was none", n))
	}
	if report := w.deps.Readiness.Load(); !report.Ready || !report.Since.Equal(since) {
		wrong = append(wrong, "I1: readiness flapped while nothing changed: "+report.Reasons())
	}
	return slices.Concat(wrong, w.wrong(), w.wrongPackets()), nil
}

// drills kills one actor after the other in a world at rest (I4, I5): a service costs VPP nothing,
// a renderer one read of the rows, none of them a change.
func (w *world) drills(r *rand.Rand) (wrong []string, err error) {
	type drill struct {
		path  string
		reads int
	}
	all := []drill{{address.Registry, 0}, {address.Watch, 0}, {address.Introspect, 0}}
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
			wrong = append(wrong, fmt.Sprintf("I4: %s died, which cost %d changes of VPP", d.path, w.vpp.Writes-writes))
		}
		if n := w.vpp.Reads - w.vpp.Checks - reads; n > d.reads {
			wrong = append(wrong, fmt.Sprintf("I4: %s died, which cost %d reads of VPP, want %d", d.path, n, d.reads))
		}
	}
	return slices.Concat(wrong, w.wrong()), nil
}
