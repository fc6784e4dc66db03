//go:build !agent

package bootstrap

import "github.com/spf13/cobra"

// developmentCommands returns the commands that need a simulated VPP or an embedded etcd.
func developmentCommands(io streams) []*cobra.Command {
	return []*cobra.Command{newDemoCommand(io), newSimulatorCommand(io)}
}

// simulationCommands returns the commands of `troupe chaos` that simulate the agent.
func simulationCommands(io streams) []*cobra.Command {
	return []*cobra.Command{newSimulateCommand(io)}
}
