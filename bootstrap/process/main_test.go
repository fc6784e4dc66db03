// Package process has tests and a benchmark only, of an agent in a process of its own.
//
// TestKills kills it by SIGKILL many times, also between two requests to VPP, while the services
// change. VPP is the simulated one behind its socket; it survives all agents, and the tests inspect
// it.
//
//	the loop            which process is killed when                    TestKills
//	process             the program, started from the test binary
//	witness             the requests to VPP; kills a process at the nth request
//	cluster             the directory of manifests, its random changes, and the rows that follow
//	                    from it
//	check               VPP against the cluster, and the writer of each row
//	traffic             connections that stay open over all kills
//
// All random choices follow from one seed, which is printed; the time of a kill also depends on the
// machine.
//
// In TestTenants and BenchmarkGreedyTenant tenants ask for very many frontends, change them all the
// time, or use up memory, while endpoints of other tenants change. VPP is a real one; the memory of
// the agent is measured alone.
//
//	export TROUPE_VPP_BIN=/path/to/vpp TROUPE_VPP_PLUGINS=/path/to/vpp_plugins
//	go test ./bootstrap/process -run 'TestTenants$' -for 30m -seed 7
//	go test ./bootstrap/process -run '^$' -bench . -benchtime 1x
package process

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
	seed  = flag.Uint64("seed", 0, "seed of everything random; 0 = another one each time, 1 for tenants")
)

// patience is the longest time that a test waits for events that take a small part of a second.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(bootstrap.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}
