package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Step is one change of the cluster or one fault.
type Step struct {
	// At is the virtual time since the start.
	At time.Duration `json:"at"`
	// Name of the change or the fault.
	What string `json:"what"`
	// Dice seed the random details.
	Dice uint64 `json:"dice"`
}

// String describes the step; the details follow from the dice.
func (s Step) String() string { return fmt.Sprintf("%8.3fs %s (%x)", s.At.Seconds(), s.What, s.Dice) }

// Plan is the list of all changes and faults of a run. The order of the actors is not in it; it
// follows from the seed.
type Plan struct {
	// Hot makes few services change often; otherwise many services change seldom. Hot plans
	// find wrong orders of messages, the others find lost updates.
	Hot bool `json:"hot"`
	// Steps are in the order of their time.
	Steps []Step `json:"steps"`
}

// Length of a plan.
const (
	troubles     = 30 * time.Second // the time of all steps
	quietChanges = 40
	hotChanges   = 1500
	years        = 40 // changes of the ageing service
	rolls        = 60 // changes of the rolling services
	mostFaults   = 25
)

// NewPlan makes the plan of a seed. With swarm, the seed also chooses the kinds of faults;
// otherwise the plan has all kinds.
func NewPlan(seed uint64, swarm bool) Plan {
	r := rand.New(rand.NewPCG(seed, 0xc4a05))
	p := Plan{Hot: r.IntN(4) == 0}
	changes, faults := quietChanges, 1+r.IntN(mostFaults)
	if p.Hot {
		changes = hotChanges
	}
	kinds := strikes()
	if swarm {
		kinds = slices.DeleteFunc(kinds, func(string) bool { return r.IntN(3) == 0 })
	}
	add := func(what string) {
		p.Steps = append(p.Steps, Step{At: time.Duration(r.Int64N(int64(troubles))), What: what, Dice: r.Uint64()})
	}
	for range changes {
		add(change)
	}
	for range years {
		add(age)
	}
	for range rolls {
		add(roll)
	}
	for range faults {
		if len(kinds) > 0 {
			add(kinds[r.IntN(len(kinds))])
		}
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return p
}

// Minimise looks for the smallest plan with which a seed still fails: it leaves out half of the
// steps at a time, then fewer, down to one. It plays at most budget runs after the first, and
// returns the result of the smallest failing plan.
func Minimise(seed uint64, plan Plan, budget int) (*Result, error) {
	best, err := Run(seed, plan, nil)
	if err != nil || best.OK() {
		return best, err
	}
	for size := (len(best.Plan.Steps) + 1) / 2; size > 0 && budget > 0; {
		smaller := false
		for from := 0; from < len(best.Plan.Steps) && budget > 0; budget-- {
			r, err := Run(seed, best.Plan.without(from, size), nil)
			if err != nil {
				return best, err
			}
			if r.OK() {
				from += size
			} else {
				best, smaller = r, true
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return best, nil
}

// without returns a copy of the plan without size steps.
func (p Plan) without(from, size int) Plan {
	to := min(from+size, len(p.Steps))
	steps := make([]Step, 0, len(p.Steps)-(to-from))
	steps = append(steps, p.Steps[:from]...)
	p.Steps = append(steps, p.Steps[to:]...)
	return p
}
