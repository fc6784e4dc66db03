package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
)

// soon is how long it may take, and a poll.
const soon = time.Second + tick

// slower are the faults after which it may take longer, with the reason. What is not in a process, messages that get lost or come late, is
// repaired by questions that are asked again after a second or more, at the latest by the audit.
var slower = map[string]struct {
	most time.Duration
	why  string
}{
	"VPP refuses":            {5 * time.Second, "every refusal is tried again after 1 s, 2 s, ..."},
	"table full":             {10 * time.Second, "the same: the longer it lasted, the longer the last wait"},
	"slow list":              {5 * time.Second, "the list itself takes up to 4 s"},
	"poisoned service":       {32 * time.Second, "it is in quarantine for 30 s, the others are not"},
	"panics before messages": {32 * time.Second, "a crash loop: back-off, at worst quarantine"},
	"panics after messages":  {32 * time.Second, "the same"},
	"panics in starts":       {32 * time.Second, "the same"},
	"panics in stops":        {32 * time.Second, "the same"},
	"messages lost":          {61 * time.Second, "not in a process"},
	"messages late":          {61 * time.Second, "not in a process"},
	"messages twice":         {61 * time.Second, "not in a process"},
}

// TestSingleFaults measures how long it takes after any single fault until all is well, in virtual time, and bounds it.
func TestSingleFaults(t *testing.T) {
	var table []string
	for _, kind := range Faults() {
		var worst time.Duration
		var who uint64
		var all []time.Duration
		for seed := range uint64(max(20/slow, 2)) {
			r, err := Single(kind, seed)
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK() {
				t.Errorf("%s, seed %d: %s", kind, seed, strings.Join(r.Violations, "\n"))
			}
			most := soon
			if s, is := slower[kind]; is {
				most = s.most
			}
			if r.Converged > most {
				t.Errorf("%s, seed %d: %v until all was well, want at most %v", kind, seed, r.Converged, most)
			}
			all = append(all, r.Converged)
			if r.Converged >= worst {
				worst, who = r.Converged, seed
			}
		}
		slices.Sort(all)
		table = append(table, fmt.Sprintf("%-24s median %8v  slowest %8v (seed %d)", kind, all[len(all)/2].Round(time.Millisecond), worst.Round(time.Millisecond), who))
	}
	t.Logf("until all is well after the end of the fault:\n%s", strings.Join(table, "\n"))
}

// TestKillEachActor: whoever dies while nothing changes, all is well within a second.
func TestKillEachActor(t *testing.T) {
	for _, path := range []string{
		actors.PathJournal, actors.PathIntrospect, actors.PathHealer, actors.PathDataplane, actors.PathLink, actors.PathInterfaces,
		actors.PathRenderer("nat44"), actors.PathRenderer("routes"), actors.PathAudit, actors.PathSessions, actors.RootName + "/world", actors.PathRegistry,
		actors.PathNodes, actors.PathServices, actors.PathWatch, actors.PathExternal,
	} {
		for seed := range uint64(6) {
			var err error
			r, broken := alone(func(w *world, _ *rand.Rand) { err = w.sys.Kill(path) }, seed)
			if err = errors.Join(err, broken); err != nil {
				t.Fatal(path, err)
			}
			if !r.OK() || r.Converged > soon {
				t.Errorf("%s, seed %d: %v, %s", path, seed, r.Converged, strings.Join(r.Violations, "\n"))
			}
		}
	}
}
