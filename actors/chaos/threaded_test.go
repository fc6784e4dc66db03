package chaos

import (
	"cmp"
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
)

// Times of a world with threads, by the wall clock.
const (
	// until all is well again; it takes a few seconds, mostly of quarantine
	wallPatience   = time.Minute
	wallStill      = 500 * time.Millisecond // then the agent must not write for so long
	wallTroubles   = troubles / speed
	threadedWorlds = 8 // at the same time; they share processors only
	threadedPlans  = 3 // plans of the simulation for one world
)

var (
	roundsFor = flag.Duration("for", wallTroubles, "time in which rounds of worlds with threads begin; CI plays a minute with the race detector")
	firstSeed = flag.Uint64("seed", 0, "seed of the first world with threads; 0 = 1, or a random seed if -for is longer than the default")
)

// TestOnDispatcher plays the actors on the production dispatcher, with real goroutines, a real
// connection and a fast clock. It is for the race detector, and for bugs that a simulation on one
// goroutine cannot show. The plan follows from the seed; the order of messages depends on the
// machine.
func TestOnDispatcher(t *testing.T) {
	seed := cmp.Or(*firstSeed, 1) // the same in each run
	if *firstSeed == 0 && *roundsFor > wallTroubles {
		seed = rand.Uint64N(1_000_000)
	}
	t.Logf("seeds from %d; repeat with -run TestOnDispatcher -seed %d", seed, seed)
	total := tally{struck: Counts{}}
	for began := time.Now(); total.worlds == 0 || time.Since(began) < *roundsFor && !t.Failed(); {
		before := goleak.IgnoreCurrent()
		tallies := make([]tally, threadedWorlds)
		var worlds sync.WaitGroup
		for i := range tallies {
			w := newThreaded(t, seed+uint64(i))
			worlds.Go(func() { tallies[i] = w.play() })
		}
		worlds.Wait()
		seed += threadedWorlds
		for _, one := range tallies {
			total.add(one)
		}
		if err := goleak.Find(before); err != nil {
			t.Errorf("I9: %v", err)
		}
	}
	t.Logf("%d worlds, %d messages of those alive in the end, %d questions answered, %d changes of VPP, struck %v", total.worlds, total.handled,
		total.answered, total.writes, total.struck)
}

// tally sums up worlds with threads.
type tally struct {
	worlds, answered int
	handled, writes  uint64
	struck           Counts
}

func (t *tally) add(o tally) {
	t.worlds += o.worlds
	t.answered += o.answered
	t.handled += o.handled
	t.writes += o.writes
	for name, n := range o.struck {
		t.struck[name] += n
	}
}

// play runs one world: plan, rest, checks, shutdown.
func (w *threaded) play() tally {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	answered := make(chan int)
	go func() { answered <- w.readAll(ctx) }()
	w.trouble()
	cancel()
	out := tally{worlds: 1, answered: <-answered, writes: w.sim.Counters().Mutating()}
	for _, a := range w.sys.Snapshot() {
		out.handled += a.Handled
	}
	w.stop()
	out.struck = w.injected.counts
	return out
}

// trouble plays the plan. Some worlds end in the middle of it; the others must be well in the end.
func (w *threaded) trouble() {
	w.Helper()
	start := w.clock.Now()
	for n := range uint64(threadedPlans) {
		w.schedule(start, NewPlan(w.seed+n<<32, true))
	}
	w.later(0, w.knock)
	const abrupt = 4 // one in so many worlds ends early
	if w.seed%abrupt == 0 {
		w.until(start.Add(time.Duration(rand.New(rand.NewPCG(w.seed, 4)).Int64N(int64(troubles)))))
		return
	}
	w.until(start.Add(troubles))
	w.calm()
	w.later(0, w.knock)
	w.converge()
	for _, b := range w.broken {
		w.Error(b)
	}
}

// schedule adds a plan of the simulation.
func (w *threaded) schedule(start time.Time, plan Plan) {
	faults := w.faults()
	for _, step := range plan.Steps {
		w.at(start.Add(step.At), func() {
			dice := rand.New(rand.NewPCG(step.Dice, 0))
			switch step.What {
			case change:
				w.cluster.mutate(dice, plan.Hot)
			case age:
				w.observed.grow(w.cluster)
			case roll:
				w.observed.roll(w.cluster, dice)
			default:
				if w.mortal > 0 && step.What == "rows put by another" {
					return
				}
				if fault := faults[step.What]; fault != nil {
					w.injected.note(Counts{step.What: 1})
					fault(dice)
				}
			}
		})
	}
}

// converge waits until all is well, stays well, and the agent writes nothing. It may take several
// rounds.
func (w *threaded) converge() {
	w.Helper()
	deadline := time.Now().Add(wallPatience)
	for {
		writes := w.sim.Counters().Mutating()
		wrong := w.amiss()
		if len(wrong) == 0 {
			w.until(w.clock.Now().Add(wallStill * speed))
			wrong = append(w.amiss(), w.differs()...)
			if len(wrong) == 0 && w.sim.Counters().Mutating() == writes {
				break
			}
		}
		if time.Now().After(deadline) {
			w.Errorf("not well after %s, or VPP is written to for ever:\n%s", wallPatience, strings.Join(append(wrong, w.journal()...), "\n"))
			return
		}
		w.until(w.clock.Now().Add(tick))
	}
	for _, wrong := range w.wrongPackets() {
		w.Error(wrong)
	}
}

// differs asks the renderer for the operations that VPP needs. It may find a difference that only
// the next drift check repairs: the roles of an interface that was replaced by one with the same
// name and index.
func (w *threaded) differs() []string {
	ctx, cancel := context.WithTimeout(w.Context(), wallPatience)
	defer cancel()
	answer, err := w.sys.Ask(ctx, address.Renderer("nat44"), &render.DiffQuery{})
	if err != nil {
		return []string{err.Error()}
	}
	page := answer.(*render.DiffPage)
	if page.Err != nil {
		return []string{page.Err.Error()}
	}
	return page.Operations
}
