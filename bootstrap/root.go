package bootstrap

import (
	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/fleet"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
)

// root is the command tree, with the state of the command line.
type root struct {
	cmd *cobra.Command
	// started is set once flags and arguments are valid: an earlier error is a usage error.
	started bool
}

// newRoot builds the command tree.
func newRoot(std cli.Streams) *root {
	r := &root{}
	r.cmd = &cobra.Command{
		Use:   "troupe",
		Short: "Kubernetes services on FD.io VPP",
		Long: "Troupe is a Kubernetes node agent. It does the work of kube-proxy on nodes that forward packets in FD.io VPP.\n" +
			"It reads Services, EndpointSlices, Nodes and Pods, computes the desired state of this node, and keeps VPP in that state.",
		Version:          api.ReadBuild().Version,
		SilenceErrors:    true, // Main prints them
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { r.started = true },
		Args:             cli.KnownCommand,
		RunE:             func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r.cmd.SetIn(std.In)
	r.cmd.SetOut(std.Out)
	r.cmd.SetErr(std.Errs)
	r.cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.Usagef("%s (see '%s --help')", err, cmd.CommandPath())
	})
	r.cmd.AddCommand(commands(std)...)
	r.cmd.InitDefaultCompletionCmd()
	return r
}

// commands returns every command of the program.
func commands(std cli.Streams) []*cobra.Command {
	all := []*cobra.Command{
		node.NewAgent(std),
		newPlanCommand(std),
		newConfigCommand(std),
		cli.Group("chaos", "Inject faults and verify that the agent recovers", append(look.ChaosCommands(std), simulationCommands(std)...)...),
		look.NewExternal(std),
		node.NewConnector(std),
		newAddresses(std),
		node.NewCleanup(std),
		node.NewVersion(std),
		fleet.NewStatus(std),
		fleet.NewCheck(std),
		fleet.NewPackets(std),
		node.NewCapture(std),
		fleet.NewSysdump(std),
		fleet.NewLook(std, execute),
	}
	return append(append(all, look.Commands(std)...), developmentCommands(std)...)
}

// newAddresses returns `troupe addresses`, the allocator, with the commands about this node.
func newAddresses(std cli.Streams) *cobra.Command {
	cmd := node.NewAddresses(std)
	cmd.AddCommand(look.AddressesCommands(std)...)
	return cmd
}
