package bootstrap

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// newTraceCommand returns `troupe trace`.
func newTraceCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace [NAMESPACE/NAME]", Short: "Follow changes from the input to the operations on VPP", Args: cobra.MaximumNArgs(1),
		Long: `Show what has happened, the newest last, and then what happens, until Ctrl-C. Everything that follows from one change of the input or from
one command has the same cause: "#7" of a change of a service is "#7" of the operations on VPP that it led to.

An argument selects one object. With -o json each record is one line.`,
		Example: `  troupe trace
  troupe trace shop/web
  troupe trace --cause 7 --follow=false`,
	}
	l := newLook(cmd)
	cause := cmd.Flags().Uint64("cause", 0, "only effects of the change or command with this number")
	kind := cmd.Flags().String("kind", "", "only with this kind")
	limit := cmd.Flags().Int("limit", 0, "end after this number of records; 0 = the limit of the agent")
	follow := cmd.Flags().Bool("follow", true, "continue with new events")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query := url.Values{"follow": {strconv.FormatBool(*follow)}}
		if len(args) > 0 {
			query.Set("object", args[0])
		}
		if *cause > 0 {
			query.Set("cause", strconv.FormatUint(*cause, 10))
		}
		if *kind != "" {
			query.Set("kind", *kind)
		}
		if *limit < 0 {
			return usagef("invalid argument \"%d\" for \"--limit\": expected 0 or more", *limit)
		} else if *limit > 0 {
			query.Set("limit", strconv.Itoa(*limit))
		}
		records := 0
		err := l.client().Stream(cmd.Context(), "trace", query, func(data []byte) error {
			records++
			return traceLine(io.out, l.out, data)
		})
		if err == nil && records == 0 { // as kubectl does; scripts that read the output do not see it
			_, _ = fmt.Fprintln(io.errs, "The journal has no record of the object: it has not changed lately, or it does not exist.")
		}
		return err
	}
	return cmd
}

// traceLine prints one record of a trace.
func traceLine(to io.Writer, out *format, data []byte) error {
	var e api.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("decode a record of the trace: %w", err)
	}
	var text string
	switch *out {
	case "json":
		text = string(data) + "\n"
	case "yaml":
		if _, err := fmt.Fprintln(to, "---"); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return out.print(to, e, nil)
	default:
		text = traceText(&e)
	}
	if _, err := io.WriteString(to, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// traceText is a record as text: one line, and one for each of its operations.
func traceText(e *api.Event) string {
	cells := []string{clock(e.Time)}
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
