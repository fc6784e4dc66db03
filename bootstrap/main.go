package bootstrap

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
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
