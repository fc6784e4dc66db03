package look

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/strictyaml"
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
	c.Details("State:", r.State, "Reason:", r.Reason, "Started by:", r.Who, "Seed:", r.Seed, "Began:", api.Clock(r.Began))
	if r.Ended.IsZero() {
		c.Row("Faults end:", api.Clock(r.Until))
	} else {
		c.Details("Took:", r.Ended.Sub(r.Began).Round(time.Millisecond), "Well again after:", r.Converged)
	}
	c.Details("Faults:", fmt.Sprintf("%d, %d skipped", r.Faults, r.Skipped), "VPP:", fmt.Sprintf("%d writes, %d row reads", r.VPPWrites, r.VPPReads))
	c.Table("Invariants", r.Invariants)
}

// planKind is the kind of a plan. Its apiVersion is config.APIVersion.
const planKind = "ChaosPlan"

// decodePlan reads a plan, YAML or JSON; source names it in errors. They are config.Errors: one for
// each field that is unknown, duplicate, of the wrong type or invalid.
func decodePlan(data []byte, source string) (*live.Plan, error) {
	plan := &live.Plan{}
	lines, errs := config.Read(data, source, planKind, &strictyaml.Decoder{}, planFields(plan))
	if len(errs) == 0 {
		for _, e := range live.Fields(plan.Check()) {
			line := lines[e.Field]
			if entry, _, nested := strings.Cut(e.Field, "."); line == 0 && nested {
				line = lines[entry]
			}
			errs = append(errs, &config.FieldError{Source: source, Problem: strictyaml.Problem{Line: line, Path: e.Field, Message: e.Message}})
		}
	}
	if err := errs.OrNil(); err != nil {
		return nil, err
	}
	return plan, nil
}

// planFields reads a plan.
func planFields(p *live.Plan) strictyaml.Value {
	return strictyaml.Object(map[string]strictyaml.Value{
		"apiVersion": word(config.APIVersion), "kind": word(planKind), "name": text(&p.Name), "seed": seed(&p.Seed),
		"for": duration(&p.For), "every": duration(&p.Every), "converge": duration(&p.Converge),
		"blastRadius": number(&p.BlastRadius), "keepGoing": strictyaml.Flag(&p.KeepGoing),
		"faults": strictyaml.List(&p.Faults, stepFields),
	})
}

// stepFields reads one fault: its own fields, and every parameter of the table. Whether a parameter
// applies to the kind of fault is validated later.
func stepFields(s *live.Step) strictyaml.Value {
	fields := map[string]strictyaml.Value{
		"fault": text((*string)(&s.Kind)), "actor": text(&s.Actor), "of": text(&s.Of), "weight": number(&s.Weight), "at": duration(&s.At),
	}
	for _, p := range live.Parameters() {
		switch to := p.Field(&s.Fault).(type) {
		case *string:
			fields[p.Name] = text(to)
		case *int:
			fields[p.Name] = number(to)
		case *float64:
			fields[p.Name] = share(to)
		case *live.Duration:
			fields[p.Name] = duration(to)
		}
	}
	return strictyaml.Object(fields)
}

func word(want string) strictyaml.Value {
	return strictyaml.Scalar(want, func(text string) bool { return text == want }, "!!str")
}

// text reads a string. An empty one is an error: users write the default by leaving out the field.
func text(to *string) strictyaml.Value {
	return strictyaml.Scalar("a string", func(text string) bool { *to = text; return text != "" }, "!!str")
}

func number(to *int) strictyaml.Value {
	return strictyaml.Scalar("a whole number above 0", func(text string) (ok bool) {
		n, err := strconv.Atoi(text)
		*to = n
		return err == nil && n > 0
	}, "!!int")
}

// seed reads a seed. JSON readers keep 53 bits of a number, and a seed must survive them to repeat
// a run.
func seed(to *uint64) strictyaml.Value {
	return strictyaml.Scalar("a whole number above 0 and below 2^53", func(text string) (ok bool) {
		n, err := strconv.ParseUint(text, 10, 53)
		*to = n
		return err == nil && n > 0
	}, "!!int")
}

func share(to *float64) strictyaml.Value {
	return strictyaml.Scalar("a number above 0 and up to 1", func(text string) (ok bool) {
		n, err := strconv.ParseFloat(text, 64)
		*to = n
		return err == nil && n > 0 && n <= 1
	}, "!!float", "!!int")
}

func duration(to *live.Duration) strictyaml.Value {
	return strictyaml.Duration(func(text []byte) error {
		if err := to.UnmarshalText(text); err != nil || *to > 0 {
			return err
		}
		return strconv.ErrRange
	})
}
