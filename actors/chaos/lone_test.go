package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Phases of a run with a single fault, in virtual time.
const (
	growUp  = 5 * time.Second // the cluster changes and comes to rest
	settled = 8 * time.Second // then the fault strikes
	afters  = 2 * time.Second // then the cluster goes on changing
	// without a problem, until all counts as well: VPP may be cut off once more
	calm = 6 * time.Second
)

// lone is a world with a single fault.
type lone struct {
	*world
	outage time.Time // the end of the last part of the fault that is known so far
}

// single plays one fault of a kind on a node that is well, "" is none at all; with an even seed the
// cluster goes on changing. Result.Converged is the time from the end of the fault, or of the last
// change if that is later, until all was well again.
func single(kind string, seed uint64) (*Result, error) {
	strike := func(*world, *rand.Rand) {}
	if kind != "" {
		if strike = faultKinds()[kind].strike; strike == nil {
			return nil, fmt.Errorf("play a single fault: there is no %q", kind)
		}
	}
	return alone(func(w *world, r *rand.Rand) {
		w.injector.count(kind) // it explains the repairs
		strike(w, r)
	}, seed)
}

// alone is single for a fault that is not in the table.
func alone(strike func(*world, *rand.Rand), seed uint64) (*Result, error) {
	w, err := newWorld(seed, nil)
	if err != nil {
		return nil, err
	}
	l := &lone{world: w}
	w.later = func(d time.Duration, fn func()) {
		l.outage = latest(l.outage, w.sim.Now().Add(d))
		w.sim.AfterFunc(d, fn)
	}
	result := &Result{Seed: seed}
	w.finish(result, l.play(strike, result))
	return result, nil
}

func (l *lone) play(strike func(*world, *rand.Rand), result *Result) error {
	start, dice := l.sim.Now(), rand.New(rand.NewPCG(result.Seed, 3))
	l.observed.watch(l.world)
	for range 20 {
		l.sim.AfterFunc(time.Duration(dice.Int64N(int64(growUp))), func() { l.cluster.mutate(dice, false) })
	}
	if err := l.sim.Run(start.Add(settled)); err != nil {
		return err
	}
	if wrong := l.wrong(); len(wrong) > 0 {
		result.Violations = append(wrong, "not well before the fault")
		return nil
	}
	l.outage = l.sim.Now()
	l.settle()
	strike(l.world, dice)
	over := l.sim.Now()
	if result.Seed%2 == 0 {
		over = over.Add(afters)
		for range 3 {
			l.sim.AfterFunc(time.Duration(dice.Int64N(int64(afters))), func() { l.cluster.mutate(dice, false) })
		}
	}
	if result.Seed%4 == 0 {
		for range years {
			l.sim.AfterFunc(time.Duration(dice.Int64N(int64(afters))), func() { l.observed.grow(l.cluster) })
		}
		for range rolls {
			l.sim.AfterFunc(time.Duration(dice.Int64N(int64(afters))), func() { l.observed.roll(l.cluster, dice) })
		}
	}
	l.outage = latest(l.outage, over)
	return l.recover(over, result)
}

// settle notes that all is well: from now on the rows of every service are observed until the
// service changes.
func (l *lone) settle() {
	s := &l.observed
	s.settled, s.version = map[frontend]int{}, l.cluster.version
	for n := range l.cluster.ordered() {
		s.settled[netip.AddrPortFrom(clusterIP(n), servicePort)] = n
		s.settled[netip.AddrPortFrom(netip.MustParseAddr(nodeIP), nodePort(n))] = n
	}
}

// recover watches until all has been well for a while. The fault is over when its last part ends:
// the cluster stops changing, VPP is back, a slow list is there.
func (l *lone) recover(over time.Time, result *Result) error {
	var wrong, found []string
	healed, bad, happened := false, over, -1
	for now := l.sim.Now(); ; now = l.sim.Now() {
		if !healed && !now.Before(l.outage) {
			if err := l.heal(); err != nil { // faults that have not struck are removed
				return err
			}
			healed = true
		}
		if l.sim.Happened() != happened { // otherwise the same is found again
			found = l.wrong()
			happened = l.sim.Happened()
		}
		if len(found) > 0 {
			wrong, bad = found, now
		} else if now.Sub(bad) > calm && now.Sub(l.outage) > calm {
			break
		}
		if now.Sub(l.outage) > patience {
			result.Violations = append(wrong, l.journal()...)
			return nil
		}
		if err := l.sim.RunFor(tick); err != nil {
			return err
		}
	}
	result.Violations = l.wrongPackets()
	result.Converged = max(bad.Sub(l.ended(latest(over, l.outage, l.vpp.Since()))), 0)
	return nil
}
