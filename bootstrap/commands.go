//go:build !agent

package bootstrap

import "github.com/spf13/cobra"

// developmentCommands returns the commands that need a simulated VPP or an embedded etcd.
func developmentCommands(std streams) []*cobra.Command {
	return []*cobra.Command{newDemoCommand(std), newSimulatorCommand(std)}
}

// simulationCommands returns the commands of `troupe chaos` that simulate the agent.
func simulationCommands(std streams) []*cobra.Command {
	return []*cobra.Command{newSimulateCommand(std)}
}
