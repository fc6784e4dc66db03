//go:build !agent

package bootstrap

import (
	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/simulated"
)

// developmentCommands returns the commands that need a simulated VPP or an embedded etcd.
func developmentCommands(std cli.Streams) []*cobra.Command {
	return []*cobra.Command{simulated.NewDemo(std), simulated.NewSimulator(std)}
}

// simulationCommands returns the commands of `troupe chaos` that simulate the agent.
func simulationCommands(std cli.Streams) []*cobra.Command {
	return []*cobra.Command{simulated.NewSimulate(std)}
}
