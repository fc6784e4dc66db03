//go:build agent

package bootstrap

import (
	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// developmentCommands returns nothing: the image of the agent has no simulated VPP and no embedded
// etcd.
func developmentCommands(cli.Streams) []*cobra.Command { return nil }

// simulationCommands returns nothing: the image of the agent has no simulation.
func simulationCommands(cli.Streams) []*cobra.Command { return nil }
