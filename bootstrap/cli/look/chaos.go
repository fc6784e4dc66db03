package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

const faultLong = `

The agent must run with --enable-chaos; it accepts faults only on its control socket. A fault ends
at its deadline. 'troupe chaos stop' ends it at once.`

const actorLong = `

ACTOR is a path as 'troupe actors' shows it, its last part ("registry"), or a service
("default/web"). The root, the journal and chaos itself are exempt.`

// ChaosCommands are the commands for faults in a running agent: one for each kind of fault, and the
// commands for all faults. The agent owns the faults: they end by themselves or with `troupe chaos
// stop`, even if the command has ended.
func ChaosCommands(std cli.Streams) []*cobra.Command {
	var commands []*cobra.Command
	for _, d := range live.Definitions() {
		commands = append(commands, newFaultCommand(std, d))
	}
	return append(commands, newRunCommand(std), newChaosStopCommand(std), newChaosRecordCommand(std),
		newQuery(std, "status", "Show faults with their outcomes, and the latest drill", Fetch("chaos", nil, statusTable)))
}

// newFaultCommand is the command of one kind of fault, with a flag for each of its parameters.
func newFaultCommand(std cli.Streams, d live.Definition) *cobra.Command {
	cmd := &cobra.Command{Use: string(d.Kind), Short: d.Help, Long: d.Help + "." + faultLong, Args: cobra.NoArgs}
	if d.NeedsActor {
		cmd.Use, cmd.Args, cmd.Long = cmd.Use+" ACTOR", cobra.ExactArgs(1), d.Help+"."+actorLong+faultLong
	}
	c := NewControl(cmd)
	wait := cmd.Flags().Bool("wait", d.Wait, "wait for the end of the fault and its outcome; fail unless all is well again")
	f := d.Defaults()
	for _, p := range live.Parameters() {
		if d.Has(p.Name) {
			addParameter(cmd, &p, &f)
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Actor = strings.Join(args, "")
		if err := checkFault(cmd, &f); err != nil {
			return err
		}
		record, err := injectFault(cmd.Context(), c.Client(), f, *wait)
		if err != nil {
			return err
		}
		if err := c.Out.Print(std.Out, record, func(t *cli.Columns) { recordTable(t, record) }); err != nil {
			return err
		}
		if record.State == live.StateNotWell || record.State == live.StateUnknown {
			return fmt.Errorf("chaos #%d: not well again: %s", record.ID, record.Outcome)
		}
		return nil
	}
	return cmd
}

// addParameter adds the flag of a parameter; its default is the value in f.
func addParameter(cmd *cobra.Command, p *live.Parameter, f *live.Fault) {
	help := p.Help
	if p.Values != nil {
		help += ": " + strings.Join(p.Values, ", ")
	}
	switch to := p.Field(f).(type) {
	case *string:
		cmd.Flags().StringVar(to, p.Name, *to, help)
	case *int:
		cmd.Flags().IntVar(to, p.Name, *to, help)
	case *float64:
		cmd.Flags().Float64Var(to, p.Name, *to, help)
	case *live.Duration:
		cmd.Flags().DurationVar((*time.Duration)(to), p.Name, time.Duration(*to), help)
	}
	if p.Values != nil {
		// fails only if the flag does not exist
		_ = cmd.RegisterFlagCompletionFunc(p.Name, cobra.FixedCompletions(p.Values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// checkFault reports invalid flags before the agent is asked.
func checkFault(cmd *cobra.Command, f *live.Fault) error {
	var texts []string
	for _, p := range live.Parameters() {
		if value := reflect.ValueOf(p.Field(f)).Elem(); cmd.Flags().Changed(p.Name) && value.IsZero() && value.Kind() != reflect.String {
			// the zero value would mean the default
			return cli.Usagef("--%s: must be above 0", p.Name)
		}
	}
	for _, e := range live.Fields(f.Check()) {
		field := "--" + e.Field
		if e.Field == "actor" {
			field = "ACTOR"
		}
		texts = append(texts, field+": "+e.Message)
	}
	if len(texts) > 0 {
		return cli.Usagef("%s", strings.Join(texts, "\n"))
	}
	return nil
}

// Intervals at which a waiting command queries the agent.
const (
	pollFault = 100 * time.Millisecond
	pollRun   = 500 * time.Millisecond
)

// injectFault injects a fault, and waits for its outcome if wait is set.
func injectFault(ctx context.Context, c *cli.Client, f live.Fault, wait bool) (*live.Record, error) {
	var record live.Record
	if err := c.PostFor(ctx, "chaos", api.ChaosRequest{Fault: f}, &record); err != nil {
		return nil, err
	}
	for wait && !record.Over() {
		status, err := chaosStatus(ctx, c, pollFault)
		if err != nil {
			return nil, err
		}
		found := status.Find(record.ID)
		if found == nil {
			return nil, fmt.Errorf("chaos #%d: the agent no longer has a record of it", record.ID)
		}
		record = *found
	}
	return &record, nil
}

// chaosStatus queries the status after a pause.
func chaosStatus(ctx context.Context, c *cli.Client, pause time.Duration) (*live.Status, error) {
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the outcome: %w", ctx.Err())
	case <-time.After(pause):
	}
	var status live.Status
	return &status, c.Get(ctx, "chaos", nil, &status)
}

// recordTable prints one fault with its outcome.
func recordTable(c *cli.Columns, r *live.Record) {
	c.Details("ID:", r.ID, "Actor:", cmp.Or(r.Actor, "-"), "Fault:", r.What, "Injected by:", r.Who, "State:", r.State, "Began:", api.Clock(r.Began))
	if r.Ended.IsZero() {
		c.Row("Ends:", api.Clock(r.Until)+", or with: troupe chaos stop")
	} else {
		c.Row("Ended:", api.Clock(r.Ended)+" ("+r.EndedBy+")")
	}
	c.Details("Struck:", r.Struck, "Outcome:", r.Outcome)
}

// newChaosStopCommand returns `troupe chaos stop`, the emergency stop: it needs no argument and
// ends everything.
func newChaosStopCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "stop", Short: "End every fault and the drill at once", Args: cobra.NoArgs}
	c := NewControl(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var answer api.ChaosStopped
		if err := c.Client().Delete(cmd.Context(), "chaos", &answer); err != nil {
			return err
		}
		return c.Out.Print(std.Out, answer, func(t *cli.Columns) { t.Row(fmt.Sprintf("%d faults stopped", answer.Stopped)) })
	}
	return cmd
}

// newChaosRecordCommand returns `troupe chaos record`.
func newChaosRecordCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "record", Short: "Print the recorded faults as a plan that injects them again", Args: cobra.NoArgs,
		Example: "  troupe chaos record > plan.yaml\n  troupe chaos run --plan plan.yaml",
	}
	l := NewUnwatched(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := l.Client(cmd.Context())
		if err != nil {
			return err
		}
		var status live.Status
		if err := c.Get(cmd.Context(), "chaos", nil, &status); err != nil {
			return err
		}
		if len(status.Records) == 0 {
			return errors.New("the agent has no record of a fault")
		}
		plan := struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			live.Plan
		}{config.APIVersion, planKind, status.Replay()}
		if !cmd.Flags().Changed("output") {
			*l.Out = "yaml"
		}
		return l.Out.Print(std.Out, plan, func(*cli.Columns) {})
	}
	return cmd
}

// statusTable prints all faults, the latest last, next to the prompt of the terminal.
func statusTable(c *cli.Columns, s *live.Status) {
	if !s.Enabled {
		c.Row("chaos is off: " + s.Hint)
		return
	}
	latestLast := slices.Clone(s.Records)
	slices.Reverse(latestLast)
	c.Table("", latestLast)
	if s.Run != nil {
		c.Section("Drill")
		runTable(c, s.Run)
	}
}
