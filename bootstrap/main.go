package bootstrap

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/fleet"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the program with the arguments after its name and returns its exit code. Call it once
// per process, because it handles signals.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // after it a second signal kills the process
	return execute(ctx, args, cli.Streams{In: in, Out: out, Errs: errs})
}

// execute is Main without signal handling, for tests.
func execute(ctx context.Context, args []string, std cli.Streams) int {
	std.Out, std.Errs = cli.NewSafe(std.Out), cli.NewSafe(std.Errs)
	root := newRoot(std)
	root.cmd.SetArgs(look.AgentFlagsLast(args))
	err := root.cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if cli.IsLogged(err) {
		return exitFailed
	}
	usage := cli.IsUsage(err) || !root.started
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(std.Errs, "troupe: %s\n", strings.TrimRight(line, "\n"))
	}
	if usage {
		return exitUsage
	}
	return exitFailed
}

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
		node.NewConnector(std), newAddresses(std),
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
