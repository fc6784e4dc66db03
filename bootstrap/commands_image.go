//go:build agent

package bootstrap

import "github.com/spf13/cobra"

// developmentCommands returns nothing: the image of the agent has no simulated VPP and no embedded
// etcd.
func developmentCommands(streams) []*cobra.Command { return nil }

// simulationCommands returns nothing: the image of the agent has no simulation.
func simulationCommands(streams) []*cobra.Command { return nil }
