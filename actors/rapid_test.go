package actors_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/address"
)

// happening is one thing that happens to a node, and the time that passes after it.
type happening struct {
	what  string
	seed  uint64
	pause time.Duration
}

func (d happening) String() string { return fmt.Sprintf("%s %d, then %v", d.what, d.seed, d.pause) }

// genHappening draws mostly changes of the cluster. Two with the same seed are the same change: a
// duplicate, or an object that comes back.
func genHappening(t *rapid.T) happening {
	return happening{
		what:  rapid.SampledFrom([]string{"change", "change", "change", "change", "relist", "kill", "healer"}).Draw(t, "what"),
		seed:  uint64(rapid.IntRange(0, 400).Draw(t, "seed")),
		pause: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 20, 2000}).Draw(t, "pause")) * time.Millisecond,
	}
}

// expendable may fail at any time without a loss.
var expendable = []string{address.Renderer("nat44"), address.Registry, address.Interfaces, address.Services, address.Service("default/s1"), address.Service("default/s2")}

// do makes it happen.
func (d happening) do(w *actorstest.World) {
	switch d.what {
	case "change":
		w.Source.Mutate(rand.New(rand.NewPCG(d.seed, 3)))
	case "relist":
		w.Source.Refresh()
	case "kill":
		_ = w.System.Kill(expendable[d.seed%uint64(len(expendable))]) // it may not be there
	case "healer":
		_ = w.System.Kill(address.Healer)
	}
	w.Run(d.pause)
}

// TestAnyChangesEndLikeFromScratch: after any changes, in any order, with duplicates, relists and
// failures of actors, VPP holds the result of a computation from scratch, and the troupe reports
// it. Then nothing is written: not while nothing happens, not by a renderer that begins anew, not
// after a list of everything.
func TestAnyChangesEndLikeFromScratch(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation has one goroutine: the race detector has nothing to find")
	}
	checks, writes := 0, uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		happenings := rapid.SliceOfN(rapid.Custom(genHappening), 0, 40).Draw(rt, "happenings")
		seed := rapid.Uint64().Draw(rt, "scheduler")
		problem := ""
		actorstest.Simulate(t, seed, actorstest.Config{}, func(w *actorstest.World) {
			w.Run(time.Second)
			for _, d := range happenings {
				d.do(w)
			}
			problem = likeFromScratch(w)
			checks, writes = checks+1, writes+w.Writes()
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
	t.Logf("%d worlds, %d writes", checks, writes)
}

// likeFromScratch says what is not as it should be in the end.
func likeFromScratch(w *actorstest.World) string {
	const limit = 3 * time.Minute
	// what no check looks at may still be on its way, like a new hairpin address without a row
	w.Run(5 * time.Second)
	wrong := w.Wrong()
	for passed := time.Duration(0); wrong != "" && passed < limit; passed += time.Second {
		w.Run(time.Second)
		wrong = w.Wrong()
	}
	if wrong != "" {
		return "in the end:\n" + wrong
	}
	before, reads := w.Writes(), w.Stream.Reads
	w.Run(2 * time.Minute)
	if err := w.System.Kill(address.Renderer("nat44")); err != nil {
		return err.Error()
	}
	w.Run(10 * time.Second)
	w.Source.Refresh()
	w.Run(10 * time.Second)
	after, again := w.Writes(), w.Stream.Reads
	switch wrong := w.Wrong(); {
	case wrong != "":
		return "in the second run:\n" + wrong
	case after != before:
		return fmt.Sprintf("%d writes in the second run, want 0", after-before)
	case again == reads:
		return "the second run has not read VPP"
	}
	return ""
}
