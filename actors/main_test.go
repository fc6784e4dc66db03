package actors_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
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
