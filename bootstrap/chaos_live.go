package bootstrap

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/client"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

const faultLong = `

ACTOR is a path as 'troupe actors' shows it, its last part ("nat44"), or a service ("default/web"). The root, the journal and chaos itself are
exempt. The agent must run with --enable-chaos; faults are only taken through its control socket. They end by themselves, and at once with
'troupe chaos stop'.`

// control is what every command has that changes something in an agent.
type control struct {
	socket string
	out    *format
}

func newControl(cmd *cobra.Command) *control {
	c := &control{out: addFormat(cmd)}
	cmd.Flags().StringVar(&c.socket, "control-socket", config.Defaults().API.ControlSocket, "path of the agent's control socket")
	return c
}

func (c *control) client() *client.Client { return client.NewControl(c.socket) }

// newLiveChaosCommands are the commands that let actors of a running agent fail.
func newLiveChaosCommands(io streams) []*cobra.Command {
	return []*cobra.Command{
		newFaultCommand(io, live.Kill, "Let an actor fail once, as if it had panicked; waits until all is well again"),
		newFaultCommand(io, live.Panic, "Let an actor panic before or after a message, in its start or in its stop"),
		newFaultCommand(io, live.Suspend, "Close the mailbox of an actor for a while: messages wait"),
		newFaultCommand(io, live.Drop, "Lose messages on their way to an actor"),
		newFaultCommand(io, live.Delay, "Have messages to an actor arrive late"),
		newFaultCommand(io, live.CrashLoop, "Let an actor fail in every start, until it is put into quarantine"),
		newRunCommand(io), newChaosStopCommand(io), newChaosStatusCommand(io),
	}
}

// newFaultCommand is the command of one kind of fault, with the flags that mean something for it.
func newFaultCommand(io streams, kind live.Kind, short string) *cobra.Command {
	cmd := &cobra.Command{Use: string(kind) + " ACTOR", Short: short, Long: short + "." + faultLong, Args: cobra.ExactArgs(1)}
	c := newControl(cmd)
	f := &live.Fault{Kind: kind}
	flags := cmd.Flags()
	wait := flags.Bool("wait", kind == live.Kill, "wait until it is over and known what came of it; fails if all is not well again then")
	if kind != live.Kill {
		flags.DurationVar((*time.Duration)(&f.For), "for", live.DefaultFor, "how long it lasts at most, up to "+live.MostFor.String())
	}
	if kind == live.Panic {
		flags.StringVar(&f.Phase, "phase", live.PhaseBefore, "when: "+strings.Join(live.Phases(), ", "))
		flags.IntVar(&f.Times, "times", 1, fmt.Sprintf("how often, up to %d", live.MostTimes))
	}
	if kind == live.Delay {
		flags.DurationVar((*time.Duration)(&f.By), "by", 0, "how late, up to "+live.MostDelay.String()+"; required")
	}
	if kind == live.Panic || kind == live.Drop || kind == live.Delay {
		flags.StringVar(&f.Message, "message", "", "only messages of this type, for example ServiceSpec")
		flags.Float64Var(&f.Rate, "rate", 1, "share of the messages that suffer, above 0 and up to 1")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Actor = args[0]
		if err := checkFault(cmd, f); err != nil {
			return err
		}
		record, err := injectFault(cmd.Context(), c.client(), *f, *wait)
		if err != nil {
			return err
		}
		if err := c.out.print(io.out, record, func(t *columns) { recordTable(t, record) }); err != nil {
			return err
		}
		if record.State == live.StateNotWell || record.State == live.StateUnknown {
			return fmt.Errorf("chaos #%d: not well again: %s", record.ID, record.Outcome)
		}
		return nil
	}
	return cmd
}

// checkFault finds flags that cannot be, before anybody is asked.
func checkFault(cmd *cobra.Command, f *live.Fault) error {
	if f.Phase == live.PhaseStart || f.Phase == live.PhaseStop {
		f.Rate = 0 // the default of the flag
	}
	for flag, zero := range map[string]bool{"rate": f.Rate == 0 && f.Phase != live.PhaseStart && f.Phase != live.PhaseStop, "times": f.Times == 0, "for": f.For == 0} {
		if zero && cmd.Flags().Changed(flag) {
			return usagef("--%s: must be above 0", flag)
		}
	}
	var texts []string
	for _, e := range live.Fields(f.Check()) {
		field := "--" + e.Field
		if e.Field == "actor" {
			field = "ACTOR"
		}
		texts = append(texts, field+": "+e.Message)
	}
	if len(texts) > 0 {
		return usagef("%s", strings.Join(texts, "\n"))
	}
	return nil
}

// How often a command that waits asks the agent.
const (
	pollFault = 100 * time.Millisecond
	pollRun   = 500 * time.Millisecond
)

// injectFault asks the agent for a fault, and waits for its outcome where that is wanted.
func injectFault(ctx context.Context, c *client.Client, f live.Fault, wait bool) (*live.Record, error) {
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
			return nil, fmt.Errorf("chaos #%d: the agent does not know of it any more", record.ID)
		}
		record = *found
	}
	return &record, nil
}

// chaosStatus asks for the status after a pause.
func chaosStatus(ctx context.Context, c *client.Client, pause time.Duration) (*live.Status, error) {
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the outcome: %w", ctx.Err())
	case <-time.After(pause):
	}
	var status live.Status
	return &status, c.Get(ctx, "chaos", nil, &status)
}

func recordTable(c *columns, r *live.Record) {
	c.row("ID:", r.ID)
	c.row("Actor:", r.Actor)
	c.row("Fault:", r.What)
	c.row("Asked for by:", r.Who)
	c.row("State:", r.State)
	c.row("Began:", clock(r.Began))
	if r.Ended.IsZero() {
		c.row("Ends:", clock(r.Until)+", or with: troupe chaos stop")
	} else {
		c.row("Ended:", clock(r.Ended)+" ("+r.EndedBy+")")
	}
	c.row("Struck:", r.Struck)
	if r.Outcome != "" {
		c.row("Outcome:", r.Outcome)
	}
}

func newChaosStopCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "stop", Short: "End every fault and the drill at once", Args: cobra.NoArgs}
	c := newControl(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var answer api.ChaosStopped
		if err := c.client().Delete(cmd.Context(), "chaos", &answer); err != nil {
			return err
		}
		return c.out.print(io.out, answer, func(t *columns) { t.row(fmt.Sprintf("%d faults stopped", answer.Stopped)) })
	}
	return cmd
}

func newChaosStatusCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show faults, what came of them, and the latest drill", Args: cobra.NoArgs}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var status live.Status
		if err := l.client().Get(cmd.Context(), "chaos", nil, &status); err != nil {
			return err
		}
		return l.out.print(io.out, status, func(t *columns) { statusTable(t, &status) })
	}
	return cmd
}

func statusTable(c *columns, s *live.Status) {
	if !s.Enabled {
		c.row("chaos is off: " + s.Hint)
		return
	}
	c.row("ID", "STATE", "ACTOR", "FAULT", "WHO", "BEGAN", "ENDS", "STRUCK", "OUTCOME")
	for i := len(s.Records) - 1; i >= 0; i-- {
		r := &s.Records[i]
		ends := r.Until
		if !r.Ended.IsZero() {
			ends = r.Ended
		}
		c.row(r.ID, r.State, r.Actor, r.What, r.Who, clock(r.Began), clock(ends), r.Struck, r.Outcome)
	}
	if s.Run != nil {
		c.section("Drill")
		runTable(c, s.Run)
	}
}
