package look

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// newGetEvents returns `troupe get events` and `troupe events`.
func newGetEvents(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "events", Short: "Show the events of the journal, the newest last", Args: cobra.NoArgs}
	l, query := New(cmd), listFlags(cmd, "kind", "object", "cause")
	limit := cmd.Flags().Int("limit", 50, "number of events, 1 to "+strconv.Itoa(api.MaxLimit))
	before := cmd.Flags().Uint64("before", 0, "only events before the one with this number")
	follow := cmd.Flags().BoolP("follow", "f", false, "continue with new events, until Ctrl-C")
	_ = cmd.RegisterFlagCompletionFunc("object", CompleteServices) // fails only without the flag
	cli.CompleteFlag(cmd, "kind", "service", "render", "command", "audit", "resync", "healing", "link", "interfaces", "node", "source", "readiness", "fault")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		values := query()
		if *follow {
			return streamEvents(cmd, std, l, values, "")
		}
		values.Set("limit", strconv.Itoa(*limit))
		if *before > 0 {
			values.Set("before", strconv.FormatUint(*before, 10))
		}
		return l.Show(cmd, std, Fetch("events", values, func(c *cli.Columns, page *api.EventPage) { eventsTable(c, page.Items) }))
	}
	return cmd
}

// eventsTable prints the newest event last, next to the prompt of the terminal. The text has no
// limit and is the last column, so that it does not widen the others.
func eventsTable(c *cli.Columns, events []api.Event) {
	c.Row("SEQ", "TIME", cli.Optional("KIND"), cli.Optional("ACTOR"), "OBJECT", "ERROR", "TEXT")
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		c.Row(e.Seq, api.Clock(e.Time), e.Kind, e.Actor, e.Object, e.Error, e.Text)
		for _, op := range e.Operations {
			c.Note(op)
		}
	}
}
