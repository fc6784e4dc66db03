package look

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// newActorsCommand returns `troupe actors` with its commands; alone it lists the actors.
func newActorsCommand(std cli.Streams) *cobra.Command {
	cmd := newGetActors(std)
	cmd.AddCommand(newGetTree(std), newActorsTop(std), newActorsShow(std), newActorsTrace(std), newActorsCompare(std), newDeadLetters(std))
	return cmd
}

// newGetActors returns `troupe get actors`. The agent filters and sorts, because it has an actor
// for each of 10,000 services.
func newGetActors(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "actors", Short: "List the actors of the agent", Args: cobra.NoArgs}
	l, query := New(cmd), listFlags(cmd, "kind", "state", "under")
	order := cmd.Flags().String("sort", "path", "path, pending, received, restarts, failures or busy")
	limit := cmd.Flags().Int("limit", api.DefaultLimit, "number of actors; 0 = all")
	cli.CompleteFlag(cmd, "sort", "path", "pending", "received", "restarts", "failures", "busy")
	cli.CompleteFlag(cmd, "state", "running", "idle", "held", "starting", "suspended", "backoff", "quarantined", "stopping")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		values := query()
		values.Set("sort", *order)
		if *limit < 0 {
			return cli.Usagef("invalid argument \"%d\" for \"--limit\": expected 0 or more", *limit)
		}
		return l.Show(cmd, std, func(ctx context.Context, c *cli.Client) (*answer, error) {
			all, total, err := cli.All[api.Actor](ctx, c, "actors", values, *limit)
			return &answer{all, func(c *cli.Columns) {
				c.Table("", all)
				if len(all) < total {
					c.Section(fmt.Sprintf("%d of %d actors; --limit 0 shows all", len(all), total))
				}
			}}, err
		})
	}
	return cmd
}

// newActorsTop returns `troupe actors top`.
func newActorsTop(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "top", Short: "Show the busiest actors", Args: cobra.NoArgs}
	l := New(cmd)
	by := cmd.Flags().String("by", "busy", "pending, received, restarts, failures or busy")
	limit := cmd.Flags().Int("limit", 10, "number of actors")
	window := cmd.Flags().Duration("window", 0, "count only activity within this time, up to 5s; 0 = since the start")
	cli.CompleteFlag(cmd, "by", "pending", "received", "restarts", "failures", "busy")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query := url.Values{"by": {*by}, "limit": {strconv.Itoa(*limit)}}
		if *window != 0 {
			query.Set("window", window.String())
		}
		return l.Show(cmd, std, Fetch("top", query, func(c *cli.Columns, page *api.Page[api.Actor]) { c.Table("", page.Items) }))
	}
	return cmd
}

// actorDetail is everything about one actor.
type actorDetail struct {
	api.Actor
	Mailbox  *api.Mailbox    `json:"mailbox"`
	Traffic  *api.Traffic    `json:"traffic"`
	Current  json.RawMessage `json:"current,omitempty"`
	Failed   []api.Failure   `json:"failed"`
	NotKnown string          `json:"notKnown,omitempty"` // why Current is missing
}

// newActorsShow returns `troupe actors show`.
func newActorsShow(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show one actor: numbers, mailbox, failures, traffic, state", Args: cobra.ExactArgs(1), ValidArgsFunction: completeActors,
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return l.Show(cmd, std, func(ctx context.Context, c *cli.Client) (*answer, error) {
			d, err := askActor(ctx, c, args[0])
			return &answer{d, func(c *cli.Columns) { actorTable(c, d) }}, err
		})
	}
	return cmd
}

// escapePath escapes the parts of the path of an actor.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// actorPath returns the path of an actor from its name (address.Named); the name itself if it stands
// for none or for several.
func actorPath(ctx context.Context, c *cli.Client, name string) (string, error) {
	if strings.HasPrefix(name, address.RootName+"/") {
		return name, nil
	}
	all, _, err := cli.All[api.Actor](ctx, c, "actors", nil, 0)
	if found := address.Named(name, all, func(a api.Actor) string { return a.Path }); len(found) == 1 {
		name = found[0]
	}
	return name, err
}

// askActor reads an actor. Only its state needs an answer of the actor, so it may be missing.
func askActor(ctx context.Context, c *cli.Client, name string) (*actorDetail, error) {
	path, err := actorPath(ctx, c, name)
	if err != nil {
		return nil, err
	}
	resource := "actors/" + escapePath(path)
	d := &actorDetail{Mailbox: &api.Mailbox{}, Traffic: &api.Traffic{}}
	var failures api.Page[api.Failure]
	for part, into := range map[string]any{"": &d.Actor, "/mailbox": d.Mailbox, "/failures": &failures, "/traffic": d.Traffic} {
		if err := c.Get(ctx, resource+part, nil, into); err != nil {
			return nil, err
		}
	}
	d.Failed = failures.Items
	if err := c.Get(ctx, resource+"/state", nil, &d.Current); err != nil {
		d.NotKnown = err.Error()
	}
	return d, nil
}

// actorTable prints one actor.
func actorTable(c *cli.Columns, d *actorDetail) {
	c.Details("Actor:", d.Path, "Kind:", d.Kind, "State:", d.State,
		"Incarnation:", fmt.Sprintf("%d, started %s, %d restarts, %d failures", d.Incarnation, api.Ago(d.Since), d.Restarts, d.Failures))
	if d.Strategy != "" {
		c.Row("Supervises:", d.Strategy+", "+budget(&d.Actor))
	}
	c.Details("Messages:", fmt.Sprintf("%d received, %d coalesced, %d discarded, the last %s", d.Received, d.Coalesced, d.Discarded, d.LastMessage),
		"Busy:", api.Elapsed(d.BusySeconds))
	if d.Handling != "" {
		c.Row("Handles:", fmt.Sprintf("%s for %s", d.Handling, api.Elapsed(d.HandlingSeconds)))
	}
	c.Details("State unknown:", d.NotKnown)
	c.Table(fmt.Sprintf("Mailbox, %d messages, the oldest for %s, at most %d so far", d.Mailbox.Pending, api.Elapsed(d.OldestSeconds), d.MostPending), d.Mailbox.Messages)
	c.Table("Failures, the newest first", d.Failed)
	trafficTable(c, d.Traffic)
	if len(d.Current) > 0 {
		c.Section("State")
		if text, err := json.MarshalIndent(d.Current, "", "  "); err == nil {
			for line := range strings.Lines(string(text)) {
				c.Paragraph(strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
}

// trafficTable prints the messages that the actors of a kind have handled and sent.
func trafficTable(c *cli.Columns, t *api.Traffic) {
	c.Table("Messages of all actors of the kind "+t.Kind, t.Messages)
	if len(t.From)+len(t.To) > 0 {
		c.Section("Other kinds")
		c.Row("KIND", "MESSAGES FROM", "MESSAGES TO")
	}
	for _, k := range t.From {
		c.Row(k.Kind, k.Count, "")
	}
	for _, k := range t.To {
		c.Row(k.Kind, "", k.Count)
	}
}

// budget describes the number of failures of its children that a supervisor still tolerates.
func budget(a *api.Actor) string {
	if a.BudgetLeft < 0 {
		return "any number of failures"
	}
	return fmt.Sprintf("%d of %d failures left", a.BudgetLeft, a.Budget)
}

// newActorsTrace returns `troupe actors trace`: the journal of one actor.
func newActorsTrace(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace NAME", Short: "Show the journal of one actor", Args: cobra.ExactArgs(1), ValidArgsFunction: completeActors,
	}
	l := NewUnwatched(cmd)
	t := traceFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := l.Client(cmd.Context())
		if err != nil {
			return err
		}
		if t.actor, err = actorPath(cmd.Context(), c, args[0]); err != nil {
			return err
		}
		return t.run(cmd, std, l, "")
	}
	return cmd
}

// newGetTree returns `troupe get tree`.
func newGetTree(std cli.Streams) *cobra.Command {
	return newQuery(std, "tree", "Show the actors as a tree", func(ctx context.Context, c *cli.Client) (*answer, error) {
		var page api.Page[*api.TreeNode]
		err := c.Get(ctx, "tree", nil, &page)
		return &answer{page.Items, func(c *cli.Columns) {
			for _, root := range page.Items {
				treeLines(c, root, "", "")
			}
		}}, err
	})
}

// treeLines prints a node and its descendants. head is the prefix of its own line, indent the
// prefix of all further lines.
func treeLines(c *cli.Columns, n *api.TreeNode, head, indent string) {
	var notes []string
	if n.Restarts > 0 {
		notes = append(notes, fmt.Sprintf("%d restarts", n.Restarts))
	}
	if n.Pending > 0 {
		notes = append(notes, fmt.Sprintf("%d pending", n.Pending))
	}
	if n.Strategy != "" {
		notes = append(notes, budget(&n.Actor))
	}
	c.Row(head+n.Name, n.Kind, n.State, strings.Join(notes, ", "))
	for i, child := range n.Children {
		if i+1 == len(n.Children) {
			treeLines(c, child, indent+"`- ", indent+"   ")
		} else {
			treeLines(c, child, indent+"|- ", indent+"|  ")
		}
	}
	if shown := below(n); shown < n.Below {
		c.Row(fmt.Sprintf("%s   ... %d more", indent, n.Below-shown), "", "", "")
	}
}

// below counts the actors below the root of a tree, including actors that a child leaves out.
func below(n *api.TreeNode) int {
	count := len(n.Children)
	for _, child := range n.Children {
		count += child.Below
	}
	return count
}

// ActorChange is the change of one actor between two instants.
type ActorChange struct {
	Path string `json:"path"`
	// Kind of the change: "new", "gone" or "changed".
	What string `json:"what"`
	// Before or After is nil if the actor did not exist.
	Before *api.Actor `json:"before,omitempty"`
	After  *api.Actor `json:"after,omitempty"`
}

// newActorsCompare returns `troupe actors compare`.
func newActorsCompare(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "compare BEFORE [AFTER]", Short: "Show the changes since a list of the actors was saved, or between two lists",
		Example: "  troupe actors --limit 0 -o json > before.json\n  troupe actors compare before.json", Args: cobra.RangeArgs(1, 2),
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var lists [2][]api.Actor
		for i, name := range args {
			data, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("read list of actors: %w", err)
			}
			if err := json.Unmarshal(data, &lists[i]); err != nil {
				return fmt.Errorf("read list of actors %s: %w", name, err)
			}
		}
		compare := func() *answer {
			changes := compareActors(lists[0], lists[1])
			return &answer{changes, func(c *cli.Columns) { changesTable(c, changes) }}
		}
		if len(args) == 2 {
			a := compare()
			return l.Out.Print(std.Out, a.value, a.table)
		}
		return l.Show(cmd, std, func(ctx context.Context, c *cli.Client) (_ *answer, err error) {
			if lists[1], _, err = cli.All[api.Actor](ctx, c, "actors", nil, 0); err != nil {
				return nil, err
			}
			return compare(), nil
		})
	}
	return cmd
}

// compareActors returns the actors that are new, gone, or were active, in the order of their paths.
// Both lists have that order.
func compareActors(before, after []api.Actor) []ActorChange {
	changes := []ActorChange{}
	for len(before)+len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Path < after[0].Path:
			changes = append(changes, ActorChange{before[0].Path, "gone", &before[0], nil})
			before = before[1:]
		case len(before) == 0 || after[0].Path < before[0].Path:
			changes = append(changes, ActorChange{after[0].Path, "new", nil, &after[0]})
			after = after[1:]
		default:
			b, a := &before[0], &after[0]
			if b.State != a.State || b.Incarnation != a.Incarnation || b.Received != a.Received || b.Failures != a.Failures || b.Pending != a.Pending {
				changes = append(changes, ActorChange{a.Path, "changed", b, a})
			}
			before, after = before[1:], after[1:]
		}
	}
	return changes
}

// changesTable prints the differences of numbers. A number that fell belongs to a new actor of the
// same name.
func changesTable(c *cli.Columns, changes []ActorChange) {
	c.Row("ACTOR", "CHANGE", "STATE", "INCARNATION", "PENDING", "RECEIVED", "FAILURES", "BUSY")
	for _, change := range changes {
		b, a := change.Before, change.After
		switch {
		case b == nil:
			c.Row(a.Path, change.What, a.State, a.Incarnation, a.Pending, a.Received, a.Failures, api.Elapsed(a.BusySeconds))
		case a == nil:
			c.Row(b.Path, change.What, "", "", "", "", "", "")
		default:
			state := a.State
			if b.State != a.State {
				state = b.State + " > " + a.State
			}
			grown := func(from, to uint64) string { return fmt.Sprintf("%+d", int64(to)-int64(from)) }
			c.Row(a.Path, change.What, state, grown(b.Incarnation, a.Incarnation), grown(b.Pending, a.Pending), grown(b.Received, a.Received),
				grown(b.Failures, a.Failures), api.Elapsed(a.BusySeconds-b.BusySeconds))
		}
	}
}

// newDeadLetters returns `troupe actors dead-letters`.
func newDeadLetters(std cli.Streams) *cobra.Command {
	return newQuery(std, "dead-letters", "Show messages that were not delivered", Fetch("dead-letters", nil, func(c *cli.Columns, d *api.DeadLetters) {
		c.Table("", d.Items)
		if int(d.Count) > len(d.Items) {
			c.Section(fmt.Sprintf("the latest of %d", d.Count))
		}
	}))
}
