package look

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// newTraceCommand returns `troupe trace`.
func newTraceCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace [NAMESPACE/NAME]", Short: "Show changes from the input to the operations on VPP", Args: cobra.MaximumNArgs(1), ValidArgsFunction: CompleteServices,
		Long: `Show past events, the newest last; with --follow then new events until Ctrl-C. All events that
follow from one change of the input, or from one command, have the same cause: if a change of a
service is "#7", the operations on VPP that follow from it are "#7" as well.

An argument selects one object. With -o json each record is one line.`,
		Example: `  troupe trace
  troupe trace shop/web
  troupe trace --cause 7`,
	}
	l := NewUnwatched(cmd)
	t := traceFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return t.run(cmd, std, l, strings.Join(args, "")) }
	return cmd
}

// traceOptions select the events of a trace.
type traceOptions struct {
	cause  uint64
	kind   string
	limit  int
	follow bool
	actor  string // only its events; "" = all
}

// traceFlags adds the flags of a trace.
func traceFlags(cmd *cobra.Command) *traceOptions {
	t := &traceOptions{}
	cmd.Flags().Uint64Var(&t.cause, "cause", 0, "only effects of the change or command with this number")
	cmd.Flags().StringVar(&t.kind, "kind", "", "only with this kind")
	cmd.Flags().IntVar(&t.limit, "limit", 0, "end after this number of records; 0 = the limit of the agent")
	cmd.Flags().BoolVarP(&t.follow, "follow", "f", false, "continue with new events, until Ctrl-C")
	return t
}

// run shows a trace of one object; "" = of all.
func (t *traceOptions) run(cmd *cobra.Command, std cli.Streams, l *Query, object string) error {
	query := url.Values{"follow": {strconv.FormatBool(t.follow)}}
	if object != "" {
		query.Set("object", object)
	}
	if t.cause > 0 {
		query.Set("cause", strconv.FormatUint(t.cause, 10))
	}
	if t.kind != "" {
		query.Set("kind", t.kind)
	}
	if t.limit < 0 {
		return cli.Usagef("invalid argument \"%d\" for \"--limit\": expected 0 or more", t.limit)
	} else if t.limit > 0 {
		query.Set("limit", strconv.Itoa(t.limit))
	}
	return streamEvents(cmd, std, l, query, t.actor)
}

// streamEvents prints the records of a trace, of one actor or of all.
func streamEvents(cmd *cobra.Command, std cli.Streams, l *Query, query url.Values, actor string) error {
	c, err := l.Client(cmd.Context())
	if err != nil {
		return err
	}
	records := 0
	err = c.Stream(cmd.Context(), "trace", query, func(data []byte) error {
		printed, err := traceLine(std.Out, l.Out, actor, data)
		records += printed
		return err
	})
	if err == nil && records == 0 { // as in kubectl, on standard error
		_, _ = fmt.Fprintln(std.Errs, "The journal has no record of the object: it has not changed lately, or it does not exist.")
	}
	return err
}

// traceLine prints one record of a trace and returns the number of printed records. It prints no
// record of another actor.
func traceLine(to io.Writer, out *cli.Format, actor string, data []byte) (int, error) {
	var e api.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return 0, fmt.Errorf("decode a record of the trace: %w", err)
	}
	if actor != "" && e.Actor != actor {
		return 0, nil
	}
	var text string
	switch *out {
	case "json":
		var compact bytes.Buffer // an agent may put whitespace between its words
		if err := json.Compact(&compact, data); err != nil {
			return 0, fmt.Errorf("decode a record of the trace: %w", err)
		}
		text = string(cli.Escaped(compact.Bytes())) + "\n"
	case "yaml":
		if _, err := fmt.Fprintln(to, "---"); err != nil {
			return 0, fmt.Errorf("write output: %w", err)
		}
		return 1, out.Print(to, e, nil)
	default:
		text = traceText(&e)
	}
	if _, err := io.WriteString(to, text); err != nil {
		return 0, fmt.Errorf("write output: %w", err)
	}
	return 1, nil
}

// traceText is a record as text: one line, and a line for each of its operations.
func traceText(e *api.Event) string {
	cells := []string{api.Clock(e.Time)}
	if e.Cause > 0 {
		cells = append(cells, "#"+strconv.FormatUint(e.Cause, 10))
	}
	for _, cell := range []string{e.Method, e.Actor, e.Object, e.Text} {
		if cell != "" {
			cells = append(cells, cell)
		}
	}
	if e.Error != "" {
		cells = append(cells, "error: "+e.Error)
	}
	lines := []string{strings.ReplaceAll(strings.Join(cells, "  "), "\n", "; ")}
	head := "    "
	if len(e.Executed) > 0 {
		head = "    planned: "
	}
	for _, op := range e.Operations {
		lines = append(lines, head+op)
	}
	for _, op := range e.Executed {
		lines = append(lines, "    executed: "+op)
	}
	return strings.Join(lines, "\n") + "\n"
}
