package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Phases of a run with a single fault, in virtual time.
const (
	growUp  = 5 * time.Second // the cluster changes and comes to rest
	settled = 8 * time.Second // then the fault strikes
	afters  = 2 * time.Second // changes of the cluster meanwhile
	// without anything wrong, until it counts as well: VPP may be cut off once more
	calm = 6 * time.Second
)

// Faults are the names of all kinds of faults, ordered.
func Faults() []string { return slices.Sorted(maps.Keys(faultKinds())) }

// Single plays one fault of a kind on a node that is well, "" is none at all; with an even seed the
// cluster goes on changing. Result.Converged is the time from the end of the fault, or the last
// change if that is later, until all was well again.
func Single(kind string, seed uint64) (*Result, error) {
	fault, found := faultKinds()[kind]
	if kind == "" {
		fault, found = func(*world, *rand.Rand) {}, true
	}
	if !found {
		return nil, fmt.Errorf("play a single fault: there is no %q", kind)
	}
	return alone(func(w *world, r *rand.Rand) {
		w.injector.count(kind) // it explains what is done about it
		fault(w, r)
	}, seed)
}

// alone is Single for a fault of any kind.
func alone(fault func(*world, *rand.Rand), seed uint64) (*Result, error) {
	w, err := newWorld(seed, nil)
	if err != nil {
		return nil, err
	}
	result := &Result{Seed: seed}
	if err = w.single(fault, result); err != nil {
		result.Violations = append(result.Violations, err.Error())
	}
	if err := w.stop(); err != nil {
		result.Violations = append(result.Violations, "I9: "+err.Error())
	}
	result.Violations = append(result.Violations, w.broken...)
	result.Struck = w.injector.counts
	return result, nil
}

func (w *world) single(fault func(*world, *rand.Rand), result *Result) error {
	start, dice := w.sim.Now(), rand.New(rand.NewPCG(result.Seed, 3))
	w.observed.watch(w)
	for range 20 {
		w.sim.AfterFunc(time.Duration(dice.Int64N(int64(growUp))), func() { w.cluster.mutate(dice, false) })
	}
	if err := w.sim.Run(start.Add(settled)); err != nil {
		return err
	}
	if wrong := w.wrong(); len(wrong) > 0 {
		result.Violations = append(wrong, "not well before the fault")
		return nil
	}
	w.outage = w.sim.Now()
	w.observed.settle(w.cluster)
	fault(w, dice)
	over := w.sim.Now()
	if result.Seed%2 == 0 {
		over = over.Add(afters)
		for range 3 {
			w.sim.AfterFunc(time.Duration(dice.Int64N(int64(afters))), func() { w.cluster.mutate(dice, false) })
		}
	}
	if result.Seed%4 == 0 {
		for range years {
			w.sim.AfterFunc(time.Duration(dice.Int64N(int64(afters))), func() { w.observed.grow(w.cluster) })
		}
		for range rolls {
			w.sim.AfterFunc(time.Duration(dice.Int64N(int64(afters))), func() { w.observed.roll(w.cluster, dice) })
		}
	}
	if over.After(w.outage) {
		w.outage = over
	}
	return w.recover(over, result)
}

// recover watches until all has been well for a while. The fault is over when its last part ends:
// the cluster stops changing, VPP is back, a slow list is there, the last late message has arrived.
func (w *world) recover(over time.Time, result *Result) error {
	var wrong, found []string
	healed, bad, happened := false, over, -1
	for now := w.sim.Now(); ; now = w.sim.Now() {
		if !healed && !now.Before(w.outage) {
			if err := w.heal(); err != nil { // faults that have not struck are removed
				return err
			}
			healed = true
		}
		if w.sim.Happened() != happened { // otherwise the same is found again
			found = w.wrong()
			happened = w.sim.Happened()
		}
		if len(found) > 0 {
			wrong, bad = found, now
		} else if now.Sub(bad) > calm && now.Sub(w.outage) > calm {
			break
		}
		if now.Sub(w.outage) > patience {
			result.Violations = append(wrong, w.journal()...)
			return nil
		}
		if err := w.sim.RunFor(tick); err != nil {
			return err
		}
	}
	result.Violations = w.wrongPackets()
	result.Converged = max(bad.Sub(w.ended(latest(over, w.outage, w.vpp.Since()))), 0)
	return nil
}

// ended is when the last part of a fault ends that goes on by itself: a slow list is there, the
// last late message has arrived.
func (w *world) ended(over time.Time) time.Time {
	return latest(over, w.source.answered, w.documents.read, w.injector.arrival)
}

// latest is the last of several times.
func latest(first time.Time, others ...time.Time) time.Time {
	return slices.MaxFunc(append(others, first), time.Time.Compare)
}
