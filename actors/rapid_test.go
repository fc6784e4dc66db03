package actors

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// happening is one thing that happens to a house, and the time that passes after it.
type happening struct {
	what  string
	seed  uint64
	pause time.Duration
}

func (d happening) String() string { return fmt.Sprintf("%s %d, then %v", d.what, d.seed, d.pause) }

// genHappening draws mostly changes of the cluster. Two with the same seed are the same change: a duplicate, or an object that comes back.
func genHappening(t *rapid.T) happening {
	return happening{
		what:  rapid.SampledFrom([]string{"change", "change", "change", "change", "relist", "kill", "resync"}).Draw(t, "what"),
		seed:  uint64(rapid.IntRange(0, 400).Draw(t, "seed")),
		pause: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 20, 2000}).Draw(t, "pause")) * time.Millisecond,
	}
}

// victims may fail at any time without a loss.
var victims = []string{PathRenderer(nat), PathRegistry, PathWatch, PathInterfaces, PathServices, PathService("ns/s1"), PathService("ns/s2")}

// do makes it happen.
func (h *house) do(d happening) {
	switch d.what {
	case "change":
		h.cluster.mutate(rand.New(rand.NewPCG(d.seed, 3)))
	case "relist":
		h.deps.Source.Refresh()
	case "kill":
		_ = h.sys.Kill(victims[d.seed%uint64(len(victims))]) // it may not be there
	case "resync":
		_ = h.sys.Kill(PathHealer) // its successor lets everybody speak again
	}
	h.run(d.pause)
}

// TestAnyChangesEndLikeFromScratch: after any changes, in any order, with duplicates, relists and failures of actors, VPP holds what a
// computation from scratch makes of the cluster, and the troupe says so. Then nothing is written: not while nothing happens, not by a
// renderer that begins anew, not after a list of everything.
func TestAnyChangesEndLikeFromScratch(t *testing.T) {
	checks, writes := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		happenings := rapid.SliceOfN(rapid.Custom(genHappening), 0, 40).Draw(rt, "happenings")
		seed := rapid.Uint64().Draw(rt, "scheduler")
		problem := ""
		inHouse(t, seed, nil, func(h *house) {
			h.run(time.Second)
			for _, d := range happenings {
				h.do(d)
			}
			problem = h.likeFromScratch()
			n, _ := h.wire.counts()
			checks, writes = checks+1, writes+n
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
	t.Logf("%d worlds, %d writes", checks, writes)
}

// likeFromScratch says what is not as it should be in the end.
func (h *house) likeFromScratch() string {
	const limit = 3 * time.Minute
	h.run(5 * time.Second) // what nobody looks at may still be on its way, like a new hairpin address without a row
	wrong := h.wrong()
	for passed := time.Duration(0); wrong != "" && passed < limit; passed += time.Second {
		h.run(time.Second)
		wrong = h.wrong()
	}
	if wrong != "" {
		return "in the end:\n" + wrong
	}
	before, reads := h.wire.counts()
	h.run(2 * time.Minute)
	if err := h.sys.Kill(PathRenderer(nat)); err != nil {
		return err.Error()
	}
	h.run(10 * time.Second)
	h.deps.Source.Refresh()
	h.run(10 * time.Second)
	after, again := h.wire.counts()
	switch wrong := h.wrong(); {
	case wrong != "":
		return "in the second run:\n" + wrong
	case after != before:
		return fmt.Sprintf("%d writes in the second run, want 0", after-before)
	case again == reads:
		return "the second run has not read VPP"
	}
	return ""
}
