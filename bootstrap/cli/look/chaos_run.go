package look

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

const runLong = `Run injects the faults of a plan into a running agent and evaluates invariants: the
node is ready, every service is in sync, and VPP, read back, is in the desired state. The blast
radius limits the number of active faults. The first violation or Ctrl-C ends all faults. The exit
code is 1 if an invariant was violated or the drill was stopped.

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
func newRunCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "run --plan FILE", Short: "Run a drill on a running agent and evaluate invariants", Long: runLong, Args: cobra.NoArgs}
	c := NewControl(cmd)
	file := cmd.Flags().String("plan", "", "file with the plan, - for standard input; required")
	lasts := cmd.Flags().Duration("for", 0, "time in which faults are injected; replaces the time in the plan")
	seed := cmd.Flags().Uint64("seed", 0, "seed of the random choices; replaces the seed in the plan")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		plan, err := readPlan(*file, std)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("for") {
			if plan.For = live.Duration(*lasts); plan.For <= 0 {
				return cli.Usagef("--for: must be above 0")
			}
		}
		if *seed > 0 {
			plan.Seed = *seed
		}
		if fields := live.Fields(plan.Check()); len(fields) > 0 {
			return cli.Usagef("--%s", fields[0])
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		run, err := drillBy(ctx, c.Client(), plan, std)
		if err != nil {
			return err
		}
		if err := c.Out.Print(std.Out, run, func(t *cli.Columns) { runTable(t, run) }); err != nil {
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
func readPlan(file string, std cli.Streams) (*live.Plan, error) {
	if file == "" {
		return nil, cli.Usagef("expected --plan FILE")
	}
	data, err := std.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if file == "-" {
		file = "standard input"
	}
	plan, err := decodePlan(data, file)
	if err != nil {
		return nil, cli.Usagef("%s", err)
	}
	return plan, nil
}

// drillBy starts a drill and waits for its end. It stops the drill when ctx ends.
func drillBy(ctx context.Context, c *cli.Client, plan *live.Plan, to cli.Streams) (*live.RunStatus, error) {
	var run live.RunStatus
	detached := context.WithoutCancel(ctx) // the drill would go on if Ctrl-C cut off the answer
	if err := c.PostFor(detached, "chaos", api.ChaosRequest{Plan: plan}, &run); err != nil {
		return nil, err
	}
	fmt.Fprintf(to.Errs, "run %d until %s, seed %d; Ctrl-C or 'troupe chaos stop' ends it\n", run.ID, api.Clock(run.Until), run.Seed)
	said := run.State
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
			fmt.Fprintf(to.Errs, "run %d %s: %d faults\n", run.ID, run.State, run.Faults)
		}
	}
	return &run, nil
}

// runTable prints a drill with the verdict on each invariant.
func runTable(c *cli.Columns, r *live.RunStatus) {
	c.Row("Run:", strings.TrimSpace(fmt.Sprint(r.ID, " ", r.Name)))
	c.Row("State:", r.State)
	if r.Reason != "" {
		c.Row("Reason:", r.Reason)
	}
	c.Row("Started by:", r.Who)
	c.Row("Seed:", r.Seed)
	c.Row("Began:", api.Clock(r.Began))
	if r.Ended.IsZero() {
		c.Row("Faults end:", api.Clock(r.Until))
	} else {
		c.Row("Took:", r.Ended.Sub(r.Began).Round(time.Millisecond))
		c.Row("Well again after:", r.Converged)
	}
	c.Row("Faults:", fmt.Sprintf("%d, %d skipped", r.Faults, r.Skipped))
	c.Row("VPP:", fmt.Sprintf("%d writes, %d row reads", r.VPPWrites, r.VPPReads))
	c.Table("Invariants", r.Invariants)
}
