package sigkill

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/bootstrap"
)

// asAgent is the variable of the environment that makes the test binary the program.
const asAgent = "TROUPE_TEST_PROGRAM"

// Default number of kills; CI uses -kills 200.
const fewKills = 8

var (
	kills = flag.Int("kills", fewKills, "how often an agent is killed, with and without an etcd inside")
	seed  = flag.Uint64("seed", 0, "seed of everything random; 0 = another one each time")
)

// patience is the longest time that a test waits for events that take a small part of a second.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(bootstrap.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}
