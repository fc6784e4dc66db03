package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams are the standard streams of a command.
type streams struct {
	in   io.Reader
	out  io.Writer
	errs io.Writer
}

// Main runs the program with the arguments after its name and returns its exit code. It handles
// signals, so that it may be called only once per process.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // after it a second signal kills the process
	return run(ctx, args, streams{in: in, out: out, errs: errs})
}

// run is Main without signal handling, for tests.
func run(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.cmd.SetArgs(agentFlagsLast(args))
	err := root.cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if logged := (*loggedError)(nil); errors.As(err, &logged) {
		return exitFailed
	}
	usage := isUsage(err) || !root.started
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(std.errs, "troupe: %s\n", strings.TrimRight(line, "\n"))
	}
	if usage {
		return exitUsage
	}
	return exitFailed
}
