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

// newLookCommands returns the commands that look into a running agent: `get` with its objects, and those of them that have a name of their
// own.
func newLookCommands(io streams) []*cobra.Command {
	get := group("get", "Look into a running agent",
		newGetServices(io), newGetService(io), newGetInterfaces(io), newGetNodes(io), newGetActors(io, "actors"), newGetTree(io),
		newGetEvents(io, "events"), newGetDiff(io, "diff"), newGetResync(io))
	return []*cobra.Command{get, newExplainCommand(io), newGetActors(io, "actors"), newGetEvents(io, "events"), newGetDiff(io, "diff"), newTraceCommand(io)}
}

// look is what every command that asks an agent has: where the agent is, and the format of the answer.
type look struct {
	address, socket string
	out             *format
}

// newLook gives a command the flags of a look.
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

// list gives a command that shows a list its filter flags and returns how to read them.
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

func newGetInterfaces(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "interfaces", Short: "List the interfaces of VPP and what they are for", Args: cobra.NoArgs}
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

func newGetNodes(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "nodes", Short: "List the nodes of the cluster as they know each other", Args: cobra.NoArgs}
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
		})
	}
	return cmd
}

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
			c.row("ACTOR", "KIND", "STATE", "LIFE", "PENDING", "RECEIVED", "RESTARTS", "FAILURES", "BUSY", "LAST FAILURE")
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

// treeLines prints a node and those below it; head stands before its own line, indent before all further ones.
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

// below counts the actors of a tree that are shown below its root, or that a child of it says are left out.
func below(n *api.TreeNode) int {
	count := len(n.Children)
	for _, child := range n.Children {
		count += child.Below
	}
	return count
}

func newGetEvents(io streams, use string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: "Show what happened, the newest last", Args: cobra.NoArgs}
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

// eventsTable prints events, which come the newest first, the newest last: where the eye of a reader of a terminal is. The text, which is as
// long as it likes, stands last, so that it does not push the other columns apart.
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

func newGetDiff(io streams, use string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: "Compare VPP, read now, with what it should hold; fails if they differ", Args: cobra.NoArgs,
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

func diffTable(c *columns, diff api.Diff) {
	for _, r := range diff.Renderers {
		switch {
		case r.Error != "":
			c.row(r.Renderer, "unknown: "+r.Error)
		case len(r.Operations) == 0:
			c.row(r.Renderer, "VPP holds what it should")
		}
		for _, op := range r.Operations {
			c.row(r.Renderer, op)
		}
	}
}

// verdict is the error of a difference.
func verdict(diff api.Diff) error {
	for _, r := range diff.Renderers {
		switch {
		case r.Error != "":
			return fmt.Errorf("%s: VPP could not be read: %s", r.Renderer, r.Error)
		case len(r.Operations) > 0:
			return fmt.Errorf("%s: VPP differs from what it should hold: %d operations would mend it", r.Renderer, len(r.Operations))
		}
	}
	return nil
}

func newGetResync(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "resync", Short: "Show how far the renderers are", Args: cobra.NoArgs}
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

// healingTables print what was done about what is wrong, and what is going to be done.
func healingTables(c *columns, state *api.Resync) {
	if len(state.Healing) > 0 {
		c.section("Healing")
		c.row("PART", "RUNG", "COUNT")
	}
	for _, h := range state.Healing {
		c.row(h.Part, h.Rung, h.Count)
	}
	if len(state.Ill) > 0 {
		c.section("Not well")
		c.row("PART", "SINCE", "LAST RUNG", "NEXT", "REASON")
	}
	for _, i := range state.Ill {
		c.row(i.Part, clock(i.Since), i.Rung, clock(i.Next), i.Reason)
	}
}

// clock is a time for a table, in UTC as in the log.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
