package bootstrap

import (
	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/chaos"
)

// newChaosCommand returns `troupe chaos`: faults in a running agent, and the simulation, which
// needs no agent.
func newChaosCommand(std cli.Streams) *cobra.Command {
	return cli.Group("chaos", "Inject faults and verify that the agent recovers", append(chaos.Commands(std), simulationCommands(std)...)...)
}
