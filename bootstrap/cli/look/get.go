package look

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// newGetServices returns `troupe get services`.
func newGetServices(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "services", Aliases: []string{"svc"}, Short: "List the services of this node", Args: cobra.NoArgs}
	l, query := New(cmd), listFlags(cmd, "namespace", "served", "state")
	cli.CompleteFlag(cmd, "served", api.Texts(api.ServedWords())...)
	cli.CompleteFlag(cmd, "state", api.Texts(api.ServiceStates())...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return l.Show(cmd, std, func(ctx context.Context, c *cli.Client) (*answer, error) {
			all, _, err := cli.All[api.Service](ctx, c, "services", query(), 0)
			var resync api.Resync
			if err == nil {
				err = c.Get(ctx, "resync", nil, &resync)
			}
			return &answer{all, func(c *cli.Columns) {
				c.Table("", all)
				if read := resync.LastRead(); !read.IsZero() {
					c.Section("STATE is from what the agent read from VPP " + api.Ago(read) + " and has written since; troupe diff reads VPP now")
				}
			}}, err
		})
	}
	return cmd
}

// serviceSessionsTable prints the sessions of a service.
func serviceSessionsTable(c *cli.Columns, s *api.ServiceSessions) {
	c.Table("", s.Items)
	if s.Incomplete != "" {
		c.Section(s.Incomplete)
	}
}

// interfacesTable prints interfaces.
func addressesTable(c *cli.Columns, all *api.Addresses) { c.Table("", all.Items) }

func interfacesTable(c *cli.Columns, set *api.Interfaces) { c.Table("", set.Items) }

// nodesTable prints the nodes, this one with the state of its claim, and the approximations of this
// node.
func nodesTable(c *cli.Columns, nodes *api.Nodes) {
	items := slices.Clone(nodes.Items)
	for i := range items {
		if items[i].Name == nodes.Self {
			items[i].Name += " (this, " + nodes.Claim + ")"
		}
	}
	c.Table("", items)
	if nodes.Renderer != "" {
		c.Section("Renderer of this node")
		c.Row(nodes.Renderer)
	}
	c.Table("Approximations of this node", nodes.Approximations)
}

// newGetSessions returns `troupe get sessions`.
func newGetSessions(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions [NAMESPACE/NAME]", Short: "Show the fill level of VPP's table of NAT sessions, or the sessions of a service", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: CompleteServices,
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			path, err := ServicePath(args[0])
			if err != nil {
				return err
			}
			return l.Show(cmd, std, Fetch(path+"/sessions", nil, serviceSessionsTable))
		}
		return l.Show(cmd, std, Fetch("sessions", nil, sessionsTable))
	}
	return cmd
}

// sessionsTable prints the sessions by protocol, and the limit of a worker.
func sessionsTable(c *cli.Columns, s *api.Sessions) {
	c.Row("BUSIEST WORKER", "LIMIT", "ALARM", "READ")
	c.Row(s.BusiestWorker, s.Limit, s.Alarm, api.Ago(s.Time))
	c.Table("By protocol", s.Protocols)
}

// resyncTable prints the renderers with their latest repairs, the steps of escalation so far, and
// the unhealthy parts with their next step.
func resyncTable(c *cli.Columns, state *api.Resync) {
	c.Table("", state.Renderers)
	repairs := slices.DeleteFunc(slices.Clone(state.Renderers), func(r api.RendererSync) bool { return r.Repair == nil })
	if len(repairs) > 0 {
		c.Section("Latest repairs")
		c.Row("RENDERER", "FOUND", "BECAUSE", "DIFFERED", "REPAIRED", "OPERATIONS")
	}
	for _, r := range repairs {
		took := "not yet"
		if end := r.Repair.Repaired; !end.IsZero() {
			took = "after " + end.Sub(r.Repair.Found).Round(time.Millisecond).String()
		}
		c.Row(r.Renderer, api.Ago(r.Repair.Found), r.Repair.Because, r.Repair.Differences, took, r.Repair.Operations)
		for _, op := range r.Repair.First {
			c.Note(op)
		}
		if more := int(r.Repair.Operations) - len(r.Repair.First); more > 0 {
			c.Note(fmt.Sprintf("and %d more: troupe events --kind render", more))
		}
	}
	c.Table("Healing", state.Healing)
	c.Table("Unhealthy", state.Ill)
}

// AddressesCommands returns `troupe addresses leave` and `troupe addresses join`.
func AddressesCommands(std cli.Streams) (all []*cobra.Command) {
	for use, short := range map[string]string{
		"leave": "Give up all load-balancer addresses of this node, before its VPP stops",
		"join":  "Take part in elections for addresses again",
	} {
		cmd := &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			Long: short + ". A restart of\nVPP or of the agent ends what 'leave' asks for. It needs the control socket.",
		}
		c := NewControl(cmd)
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			request := api.AddressesRequest{Leave: use == "leave"}
			if err := c.Client().Post(cmd.Context(), "addresses", request); err != nil {
				return err
			}
			all, err := awaitAddresses(cmd.Context(), c.Client(), request.Leave)
			if err != nil {
				return err
			}
			return c.Out.Print(std.Out, all, func(c *cli.Columns) { addressesTable(c, all) })
		}
		all = append(all, cmd)
	}
	return all
}

// awaitAddresses returns the addresses; after a leave when this node owns none any more.
func awaitAddresses(ctx context.Context, c *cli.Client, left bool) (*api.Addresses, error) {
	const patience, pause = 10 * time.Second, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		all, err := cli.Whole[api.Addresses, api.Address](ctx, c, "addresses")
		if err != nil || !left || !slices.ContainsFunc(all.Items, func(a api.Address) bool { return a.State != api.NoRouter }) {
			return all, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait until this node owns no addresses: %w", ctx.Err())
		}
	}
}

// newResyncCommand returns `troupe resync`.
func newResyncCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "resync", Short: "Read Kubernetes and VPP again and repair differences", Args: cobra.NoArgs,
		Long: `Read Kubernetes and VPP again, repair differences, and show them as 'troupe get resync' does. It
ends when every renderer has read VPP and is in sync; the exit code is 1 if that takes longer than
--timeout. With --method upstream it does not wait. It needs the control socket.`,
	}
	c := NewControl(cmd)
	request := api.ResyncRequest{}
	cmd.Flags().StringVar((*string)(&request.Method), "method", string(api.ResyncFull), "full, upstream = only Kubernetes, or downstream = only VPP")
	cmd.Flags().StringVar(&request.Reason, "reason", "", "reason for the journal")
	timeout := cmd.Flags().Duration("timeout", 30*time.Second, "time limit of the wait; 0 = do not wait")
	cli.CompleteFlag(cmd, "method", string(api.ResyncFull), string(api.ResyncUpstream), string(api.ResyncDownstream))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, asked := c.Client(), time.Now()
		if err := client.Post(cmd.Context(), "resync", request); err != nil {
			return err
		}
		patience := *timeout
		if request.Method == api.ResyncUpstream {
			patience = 0
		}
		state, waits, err := awaitResync(cmd.Context(), client, asked, patience)
		if err != nil {
			return err
		}
		if err := c.Out.Print(std.Out, state, func(c *cli.Columns) { resyncTable(c, state) }); err != nil || patience == 0 {
			return err
		}
		return waits
	}
	return cmd
}

// awaitResync returns the state when every renderer has read VPP after a time and is in sync. After
// patience it returns the state as it is; waits is what it has waited for, nil = nothing.
func awaitResync(ctx context.Context, c *cli.Client, asked time.Time, patience time.Duration) (state *api.Resync, waits, err error) {
	for {
		state, waits = &api.Resync{}, nil
		if err := c.Get(ctx, "resync", nil, state); err != nil {
			return nil, nil, err
		}
		for _, r := range state.Renderers {
			switch {
			case !r.InSync:
				waits = fmt.Errorf("%s is not in sync: %s", r.Renderer, r.Reason)
			case r.Read.Before(asked):
				waits = fmt.Errorf("%s has not read VPP", r.Renderer)
			case r.Repair != nil && r.Repair.Repaired.IsZero():
				waits = fmt.Errorf("%s has not repaired %d differences", r.Renderer, r.Repair.Differences)
			}
		}
		if waits == nil || time.Since(asked) > patience {
			return state, waits, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("wait for the resync: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// newGetService returns `troupe get service`.
func newGetService(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service NAMESPACE/NAME",
		Short: "Show one service: frontends, rendered rows, rows in VPP",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: CompleteServices,
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := ServicePath(args[0])
		if err != nil {
			return err
		}
		return l.Show(cmd, std, Fetch(path, nil, serviceTable))
	}
	return cmd
}

// ServicePath returns the resource of the service NAMESPACE/NAME in the API of the agent.
func ServicePath(arg string) (string, error) {
	namespace, name, ok := strings.Cut(arg, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", cli.Usagef("%q is not the name of a service: expected NAMESPACE/NAME", arg)
	}
	return "services/" + escapePath(arg), nil
}

// serviceTable prints a service. Desired rows and rows in VPP are separate tables, because they
// differ while a change is pending.
func serviceTable(c *cli.Columns, s *api.ServiceDetail) {
	c.Details("Service:", s.Key, "Served:", fmt.Sprintf("%s: %s", s.Served, s.Served.Why()), "State:", s.State, "Changed:", cmp.Or(api.Ago(s.Changed), "-"),
		"Not served:", s.NotServed, "Error:", s.Error)
	c.Section("Wanted")
	c.Table("", s.Wanted)
	c.Table("Health checks", s.HealthChecks)
	c.Section("Rendered")
	RowsTable(c, s.Rendered)
	title := "In VPP"
	if !s.Read.IsZero() {
		title += ", as read " + api.Ago(s.Read) + " or written since"
	}
	c.Section(title)
	RowsTable(c, s.InVPP)
	c.Table("Approximations", s.Approximations)
	c.Table("Owned by other services", s.Conflicts)
	c.Table("Invalid input", s.Problems)
}

// RowsTable prints rows of VPP.
func RowsTable(c *cli.Columns, rows []api.Row) {
	c.Row("RENDERER", "FRONTEND", cli.Optional("SERVICE"), cli.Optional("FLAGS"), "BACKENDS", "WEIGHT", cli.Optional("AFFINITY"))
	for _, r := range rows {
		locals, weights := make([]string, len(r.Locals)), make([]string, 0, 1)
		for i, l := range r.Locals {
			locals[i] = l.Text()
			if w := strconv.FormatUint(uint64(l.Weight), 10); len(weights) == 0 || weights[len(weights)-1] != w {
				weights = append(weights, w)
			}
		}
		c.Row(r.Renderer, r.VIP, r.Service, strings.Join(r.Flags, ","), strings.Join(locals, ","), strings.Join(weights, ","),
			seconds(r.AffinitySeconds))
	}
}

// seconds formats a number of seconds for a table; 0 is empty.
func seconds(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%ds", n)
}

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
