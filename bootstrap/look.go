package bootstrap

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/client"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// newLookCommands returns the commands that query a running agent: `get` with its objects, and the objects with a command of their own.
func newLookCommands(io streams) []*cobra.Command {
	get := group("get", "Query a running agent",
		newGetServices(io), newGetService(io), newGetInterfaces(io), newGetNodes(io), newGetActors(io, "actors"), newGetTree(io),
		newGetEvents(io, "events"), newGetDiff(io, "diff"), newGetResync(io))
	return []*cobra.Command{get, newExplainCommand(io), newGetActors(io, "actors"), newGetEvents(io, "events"), newGetDiff(io, "diff"), newTraceCommand(io)}
}

// look is the common part of commands that query an agent: its address and the output format.
type look struct {
	address, socket string
	out             *format
}

// newLook adds the flags of a look to a command.
func newLook(cmd *cobra.Command) *look {
	defaults := config.Defaults().API
	l := &look{out: addFormat(cmd)}
	cmd.Flags().StringVar(&l.address, "address", defaults.HTTPAddress, "address of the agent's HTTP server")
	cmd.Flags().StringVar(&l.socket, "control-socket", "", "path of the agent's control socket; replaces --address")
	return l
}

// client returns a client for the agent.
func (l *look) client() *client.Client {
	if l.socket != "" {
		return client.NewControl(l.socket)
	}
	return client.New(strings.TrimPrefix(l.address, "http://"))
}

// list adds filter flags to a command and returns a function that reads them.
func listFlags(cmd *cobra.Command, filters ...string) func() url.Values {
	for _, name := range filters {
		cmd.Flags().String(name, "", "only with this "+name)
	}
	return func() url.Values {
		query := url.Values{}
		for _, name := range filters {
			if value, _ := cmd.Flags().GetString(name); value != "" {
				query.Set(name, value)
			}
		}
		return query
	}
}

// newGetServices returns `troupe get services`.
func newGetServices(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "services", Aliases: []string{"svc"}, Short: "List the services of this node", Args: cobra.NoArgs}
	l, query := newLook(cmd), listFlags(cmd, "namespace", "state")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, _, err := client.All[api.Service](cmd.Context(), l.client(), "services", query(), 0)
		if err != nil {
			return err
		}
		return l.out.print(io.out, all, func(c *columns) {
			c.row("SERVICE", "STATE", "FRONTENDS", "ENDPOINTS", "ROWS", "GENERATION", "CHANGED", "ERROR")
			for _, s := range all {
				c.row(s.Key, s.State, s.Frontends, s.Endpoints, s.Rows, s.Generation, clock(s.Changed), s.Error)
			}
		})
	}
	return cmd
}

// newGetInterfaces returns `troupe get interfaces`.
func newGetInterfaces(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "interfaces", Short: "List the interfaces of VPP with their roles", Args: cobra.NoArgs}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var set api.Interfaces
		if err := l.client().Get(cmd.Context(), "interfaces", nil, &set); err != nil {
			return err
		}
		return l.out.print(io.out, set, func(c *columns) {
			c.row("INDEX", "NAME", "KIND", "UP", "FRONTEND", "BACKEND", "ADDRESSES", "PODS")
			for _, i := range set.Items {
				c.row(i.Index, i.Name, i.Kind, i.Up, i.Frontend, i.Backend, strings.Join(i.Addresses, ","), strings.Join(i.Pods, ","))
			}
		})
	}
	return cmd
}

// newGetNodes returns `troupe get nodes`, with the state of this node's claim in its row.
func newGetNodes(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "nodes", Short: "List the nodes of the cluster with their IDs and addresses", Args: cobra.NoArgs}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var nodes api.Nodes
		if err := l.client().Get(cmd.Context(), "nodes", nil, &nodes); err != nil {
			return err
		}
		return l.out.print(io.out, nodes, func(c *columns) {
			c.row("NAME", "ID", "VPP ADDRESSES", "MANAGEMENT ADDRESSES", "POD CIDRS")
			for _, n := range nodes.Items {
				name := n.Name
				if name == nodes.Self {
					name += " (this, " + nodes.Claim + ")"
				}
				c.row(name, n.ID, strings.Join(n.VPPAddresses, ","), strings.Join(n.ManagementAddresses, ","), strings.Join(n.PodCIDRs, ","))
			}
			if len(nodes.Approximations) > 0 {
				c.section("Approximations of this node")
				c.row("RENDERER", "SERVICES", "WANTED", "RENDERED", "WHY")
			}
			for _, a := range nodes.Approximations {
				c.row(a.Renderer, a.Services, a.Wanted, a.Rendered, a.Why)
			}
		})
	}
	return cmd
}

// newGetActors returns `troupe get actors` and, with another name, `troupe actors`. The agent filters and sorts, because 10,000 services are as
// many actors.
func newGetActors(io streams, use string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: "List the actors of the agent", Args: cobra.NoArgs}
	l, query := newLook(cmd), listFlags(cmd, "kind", "state", "under")
	order := cmd.Flags().String("sort", "path", "path, pending, received, restarts, failures or busy")
	limit := cmd.Flags().Int("limit", api.DefaultLimit, "number of actors; 0 = all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		values := query()
		values.Set("sort", *order)
		if *limit < 0 {
			return usagef("invalid argument \"%d\" for \"--limit\": expected 0 or more", *limit)
		}
		all, total, err := client.All[api.Actor](cmd.Context(), l.client(), "actors", values, *limit)
		if err != nil {
			return err
		}
		return l.out.print(io.out, all, func(c *columns) {
			c.row("ACTOR", "KIND", "STATE", "INCARNATION", "PENDING", "RECEIVED", "RESTARTS", "FAILURES", "BUSY", "LAST FAILURE")
			for _, a := range all {
				busy := time.Duration(a.BusySeconds * float64(time.Second)).Round(time.Microsecond)
				c.row(a.Path, a.Kind, a.State, a.Incarnation, a.Pending, a.Received, a.Restarts, a.Failures, busy, a.LastFailure)
			}
			if len(all) < total {
				c.section(fmt.Sprintf("%d of %d actors; --limit 0 shows all", len(all), total))
			}
		})
	}
	return cmd
}

// newGetTree returns `troupe get tree`.
func newGetTree(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "tree", Short: "Show the actors as a tree", Args: cobra.NoArgs}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var page api.Page[*api.TreeNode]
		if err := l.client().Get(cmd.Context(), "tree", nil, &page); err != nil {
			return err
		}
		return l.out.print(io.out, page.Items, func(c *columns) {
			for _, root := range page.Items {
				treeLines(c, root, "", "")
			}
		})
	}
	return cmd
}

// treeLines prints a node and its descendants; head is the prefix of its own line, indent that of all further lines.
func treeLines(c *columns, n *api.TreeNode, head, indent string) {
	note := ""
	if n.Restarts > 0 {
		note = strconv.FormatUint(n.Restarts, 10) + " restarts"
	}
	c.row(head+n.Name, n.Kind, n.State, note)
	for i, child := range n.Children {
		if i+1 == len(n.Children) {
			treeLines(c, child, indent+"`- ", indent+"   ")
		} else {
			treeLines(c, child, indent+"|- ", indent+"|  ")
		}
	}
	if shown := below(n); shown < n.Below {
		c.row(fmt.Sprintf("%s   ... %d more", indent, n.Below-shown), "", "", "")
	}
}

// below counts the actors below the root of a tree, with those that a child leaves out.
func below(n *api.TreeNode) int {
	count := len(n.Children)
	for _, child := range n.Children {
		count += child.Below
	}
	return count
}

// newGetEvents returns `troupe get events` and `troupe events`.
func newGetEvents(io streams, use string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: "Show the events of the journal, the newest last", Args: cobra.NoArgs}
	l, query := newLook(cmd), listFlags(cmd, "kind", "object", "cause")
	limit := cmd.Flags().Int("limit", 50, "number of events, 1 to "+strconv.Itoa(api.MaxLimit))
	before := cmd.Flags().Uint64("before", 0, "only events before the one with this number")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		values := query()
		values.Set("limit", strconv.Itoa(*limit))
		if *before > 0 {
			values.Set("before", strconv.FormatUint(*before, 10))
		}
		var page api.EventPage
		if err := l.client().Get(cmd.Context(), "events", values, &page); err != nil {
			return err
		}
		return l.out.print(io.out, page, func(c *columns) { eventsTable(c, page.Items) })
	}
	return cmd
}

// eventsTable prints the newest event last, next to the prompt of the terminal. The text has no limit and is the last column, so that it does not
// widen the others.
func eventsTable(c *columns, events []api.Event) {
	c.row("SEQ", "TIME", "KIND", "ACTOR", "OBJECT", "ERROR", "TEXT")
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		c.row(e.Seq, clock(e.Time), e.Kind, e.Actor, e.Object, e.Error, e.Text)
		for _, op := range e.Operations {
			fmt.Fprintf(c.w, "\t\t\t\t\t\t  %s\n", op)
		}
	}
}

// newGetDiff returns `troupe get diff` and `troupe diff`. Its exit code is 1 if VPP differs, so that scripts can wait for convergence.
func newGetDiff(io streams, use string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: "Read VPP and compare it with the desired state; fails if they differ", Args: cobra.NoArgs,
		Long: `Read VPP and compare it with the desired state; the exit code is 1 if they differ.

Through --control-socket the agent reads VPP now. Over TCP it reads VPP at most once in 5 seconds for all clients, because reading stops the workers
of VPP for a moment; the output says the age of an older reading.`,
	}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var diff api.Diff
		if err := l.client().Get(cmd.Context(), "diff", nil, &diff); err != nil {
			return err
		}
		if err := l.out.print(io.out, diff, func(c *columns) { diffTable(c, diff) }); err != nil {
			return err
		}
		return verdict(diff)
	}
	return cmd
}

// diffTable prints the operations that would bring VPP to the desired state.
func diffTable(c *columns, diff api.Diff) {
	for _, r := range diff.Renderers {
		switch {
		case r.Error != "":
			c.row(r.Renderer, "unknown: "+r.Error)
		case len(r.Operations) == 0:
			c.row(r.Renderer, "VPP is in the desired state")
		}
		for _, op := range r.Operations {
			c.row(r.Renderer, op)
		}
	}
	if age := time.Since(diff.Time).Truncate(time.Second); age > 0 && !diff.Time.IsZero() {
		c.section(fmt.Sprintf("VPP was read %s ago; --control-socket PATH reads it now", age))
	}
}

// verdict is an error if there is a difference.
func verdict(diff api.Diff) error {
	for _, r := range diff.Renderers {
		switch {
		case r.Error != "":
			return fmt.Errorf("%s: VPP could not be read: %s", r.Renderer, r.Error)
		case len(r.Operations) > 0:
			return fmt.Errorf("%s: VPP differs from the desired state: %d operations would repair it", r.Renderer, len(r.Operations))
		}
	}
	return nil
}

// newGetResync returns `troupe get resync`.
func newGetResync(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "resync", Short: "Show the progress of the renderers, and repairs", Args: cobra.NoArgs}
	l := newLook(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var state api.Resync
		if err := l.client().Get(cmd.Context(), "resync", nil, &state); err != nil {
			return err
		}
		return l.out.print(io.out, state, func(c *columns) {
			c.row("RENDERER", "EPOCH", "IN SYNC", "DIFFERENCES", "OPERATIONS", "REASON", "ERROR")
			for _, r := range state.Renderers {
				c.row(r.Renderer, r.Epoch, r.InSync, r.Differences, r.Operations, r.Reason, r.Error)
			}
			healingTables(c, &state)
		})
	}
	return cmd
}

// healingTables prints the repairs so far, and the unhealthy parts with their next escalation step.
func healingTables(c *columns, state *api.Resync) {
	if len(state.Healing) > 0 {
		c.section("Healing")
		c.row("PART", "STEP", "COUNT")
	}
	for _, h := range state.Healing {
		c.row(h.Part, h.Rung, h.Count)
	}
	if len(state.Ill) > 0 {
		c.section("Unhealthy")
		c.row("PART", "SINCE", "LAST STEP", "NEXT", "REASON")
	}
	for _, i := range state.Ill {
		c.row(i.Part, clock(i.Since), i.Rung, clock(i.Next), i.Reason)
	}
}

// clock formats a time for a table, in UTC as in the log.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
