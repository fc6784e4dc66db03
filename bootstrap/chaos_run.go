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
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/client"
	"github.com/troupe-vpp/troupe/bootstrap/drill"
)

const runLong = `Run injects the faults of a plan into a running agent and evaluates invariants: the node is ready, every service is in sync, and VPP, read back,
is in the desired state. The blast radius limits the number of active faults. The first violation or Ctrl-C ends all faults. The exit code is 1 if
an invariant was violated or the drill was stopped.

The plan is a YAML file, see docs/chaos.md:

  apiVersion: troupe.dev/v1alpha1
  kind: ChaosPlan
  every: 5s
  faults:
  - {fault: kill, of: service, weight: 3}
  - {fault: suspend, actor: registry, for: 4s}`

// errStopped means that a drill was stopped before its end.
var errStopped = errors.New("the drill was stopped")

// newRunCommand returns `troupe chaos run`. It validates the plan before it asks the agent, because
// only the file has lines for errors.
func newRunCommand(std streams) *cobra.Command {
	cmd := &cobra.Command{Use: "run --plan FILE", Short: "Run a drill on a running agent and evaluate invariants", Long: runLong, Args: cobra.NoArgs}
	c := newControl(cmd)
	file := cmd.Flags().String("plan", "", "file with the plan, - for standard input; required")
	lasts := cmd.Flags().Duration("for", 0, "time in which faults are injected; replaces the time in the plan")
	seed := cmd.Flags().Uint64("seed", 0, "seed of the random choices; replaces the seed in the plan")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		plan, err := readPlan(*file, std.in)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("for") {
			if plan.For = live.Duration(*lasts); plan.For <= 0 {
				return usagef("--for: must be above 0")
			}
		}
		if *seed > 0 {
			plan.Seed = *seed
		}
		if fields := live.Fields(plan.Check()); len(fields) > 0 {
			return usagef("--%s", fields[0])
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		run, err := drillBy(ctx, c.client(), plan, std)
		if err != nil {
			return err
		}
		if err := c.out.print(std.out, run, func(t *columns) { runTable(t, run) }); err != nil {
			return err
		}
		switch run.State {
		case live.RunViolated:
			return fmt.Errorf("run %d: %s", run.ID, run.Reason)
		case live.RunStopped:
			return fmt.Errorf("run %d: %w: %s", run.ID, errStopped, run.Reason)
		}
		return nil
	}
	return cmd
}

// readPlan reads and validates a plan; its errors are usage errors.
func readPlan(file string, in io.Reader) (*live.Plan, error) {
	var data []byte
	var err error
	switch file {
	case "":
		return nil, usagef("expected --plan FILE")
	case "-":
		file = "standard input"
		data, err = io.ReadAll(in)
	default:
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	plan, err := drill.Decode(data, file)
	if err != nil {
		return nil, &usageError{err.Error()}
	}
	return plan, nil
}

// drillBy starts a drill and waits for its end. It stops the drill when ctx ends.
func drillBy(ctx context.Context, c *client.Client, plan *live.Plan, to streams) (*live.RunStatus, error) {
	var run live.RunStatus
	if err := c.PostFor(ctx, "chaos", api.ChaosRequest{Plan: plan}, &run); err != nil {
		return nil, err
	}
	fmt.Fprintf(to.errs, "run %d until %s, seed %d; Ctrl-C or 'troupe chaos stop' ends it\n", run.ID, clock(run.Until), run.Seed)
	said, detached := run.State, context.WithoutCancel(ctx)
	for stopped := false; !run.State.Over(); {
		if ctx.Err() != nil && !stopped {
			stopped = true
			if err := c.Delete(detached, "chaos", nil); err != nil {
				return nil, fmt.Errorf("stop the drill: %w", err)
			}
		}
		status, err := chaosStatus(detached, c, pollRun)
		switch {
		case err != nil:
			return nil, err
		case status.Run == nil || status.Run.ID != run.ID:
			return nil, fmt.Errorf("run %d: the agent no longer has a record of it", run.ID)
		}
		run = *status.Run
		if run.State != said {
			said = run.State
			fmt.Fprintf(to.errs, "run %d %s: %d faults\n", run.ID, run.State, run.Faults)
		}
	}
	return &run, nil
}

// runTable prints a drill with the verdict on each invariant.
func runTable(c *columns, r *live.RunStatus) {
	c.row("Run:", strings.TrimSpace(fmt.Sprint(r.ID, " ", r.Name)))
	c.row("State:", r.State)
	if r.Reason != "" {
		c.row("Reason:", r.Reason)
	}
	c.row("Started by:", r.Who)
	c.row("Seed:", r.Seed)
	c.row("Began:", clock(r.Began))
	if r.Ended.IsZero() {
		c.row("Faults end:", clock(r.Until))
	} else {
		c.row("Took:", r.Ended.Sub(r.Began).Round(time.Millisecond))
		c.row("Well again after:", r.Converged)
	}
	c.row("Faults:", fmt.Sprintf("%d, %d skipped", r.Faults, r.Skipped))
	c.row("VPP:", fmt.Sprintf("%d writes, %d row reads", r.VPPWrites, r.VPPReads))
	c.section("Invariants")
	c.row("NAME", "STATE", "WHAT", "DETAIL")
	for _, i := range r.Invariants {
		c.row(i.Name, i.State, i.What, i.Detail)
	}
}
