package look

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

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
