package bootstrap

import (
	"strings"

	"github.com/spf13/cobra"
)

// root is the command tree, with the state of the command line.
type root struct {
	cmd *cobra.Command
	// started is set once flags and arguments are valid: an earlier error is a usage error.
	started bool
}

// newRoot builds the command tree.
func newRoot(std streams) *root {
	r := &root{}
	r.cmd = &cobra.Command{
		Use:   "troupe",
		Short: "Kubernetes services on FD.io VPP",
		Long: "Troupe is a Kubernetes node agent. It does the work of kube-proxy on nodes that forward packets in FD.io VPP.\n" +
			"It reads Services, EndpointSlices, Nodes and Pods, computes the desired state of this node, and keeps VPP in that state.",
		Version:          readVersion().Version,
		SilenceErrors:    true, // Main prints them
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { r.started = true },
		Args:             knownCommand,
		RunE:             func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r.cmd.SetIn(std.in)
	r.cmd.SetOut(std.out)
	r.cmd.SetErr(std.errs)
	r.cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s (see '%s --help')", err, cmd.CommandPath())
	})
	r.cmd.AddCommand(commands(std)...)
	r.cmd.InitDefaultCompletionCmd()
	return r
}

// commands returns every command of the program.
func commands(std streams) []*cobra.Command {
	all := []*cobra.Command{
		newAgentCommand(std),
		newPlanCommand(std),
		newConfigCommand(std),
		newChaosCommand(std),
		newExternalCommand(std),
		newConnectorCommand(std),
		newCleanupCommand(std),
		newVersionCommand(std),
		newStatusCommand(std),
		newCheckCommand(std),
		newCaptureCommand(std),
		newSysdumpCommand(std),
		newLookCommand(std),
	}
	return append(append(all, newLookCommands(std)...), developmentCommands(std)...)
}

// group returns a command that has subcommands only.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: knownCommand, RunE: needsSubcommand}
	cmd.AddCommand(commands...)
	return cmd
}

// knownCommand refuses arguments of a group, which are names of no command, with the names that
// are meant perhaps.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = ": did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usagef("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
}

// needsSubcommand is the usage error of a group without a subcommand.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("expected a command: %s (see '%s --help')", strings.Join(names, ", "), cmd.CommandPath())
}
