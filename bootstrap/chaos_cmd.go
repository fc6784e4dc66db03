package bootstrap

import "github.com/spf13/cobra"

// newChaosCommand returns `troupe chaos`: faults in a running agent, and the simulation, which
// needs no agent.
func newChaosCommand(std streams) *cobra.Command {
	return group("chaos", "Inject faults and verify that the agent recovers", append(newLiveChaosCommands(std), simulationCommands(std)...)...)
}
