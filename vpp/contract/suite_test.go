package contract

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

func TestMain(m *testing.M) {
	link.Quiet(slog.New(slog.DiscardHandler)) // GoVPP's loggers write to standard output
	goleak.VerifyTestMain(m)
}

// contractCase is one article of the contract.
type contractCase struct {
	name string
	run  func(t *testing.T, v *rig)
}

// cases is the whole table; every file of cases contributes a part.
var cases = [][]contractCase{pluginCases, rowCases, localCases, staticCases, addressCases, roleCases, guardCases, resyncCases, releaseCases, interfaceCases, routeCases, routeSourceCases, refusedCases, discoverCases, sessionCases, housekeepingCases, sweepCases, heldCases, leaveCases, shareCases, drainCases, aclCases, externalCases, snatCases, clashCases, protocolCases, cnatCases, cnatPackets, cnatRealIPs, cnatTargets, fragmentCases, memoryCases, tableCases, cnatOwners, vrrpCases}

// runSuite runs every case on a VPP of its own.
func runSuite(t *testing.T, start func(testing.TB) Target) {
	for _, group := range cases {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { c.run(t, newRig(t, start(t))) })
		}
	}
}

func TestSimulator(t *testing.T) {
	runSuite(t, startSimulated)
}

func TestRealVPP(t *testing.T) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		t.Skip(why)
	}
	runSuite(t, func(t testing.TB) Target { return real{realvpp.Start(t, binary, plugins)} })
}
