package actors_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest"
)

// parallel is how many worlds are played at once: they wait most of the time.
const parallel = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		if err := p.Value.Set(parallel); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

var seeds = flag.Int("seeds", 0, "how many seeds the simulated worlds run, CI 60; 0 = a few seconds' worth")

// campaign is how many seeds to run: so many, fewer with the race detector, or as many as are asked
// for.
func campaign(n int) int {
	if *seeds > 0 {
		return *seeds
	}
	return max(n/actorstest.Slow, 3)
}
