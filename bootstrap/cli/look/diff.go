package look

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// newGetDiff returns `troupe get diff` and `troupe diff`. Its exit code is 1 if VPP differs, so
// that scripts can wait for convergence.
func newGetDiff(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff", Short: "Read VPP and compare it with the desired state; fails if they differ", Args: cobra.NoArgs,
		Long: `Read VPP and compare it with the desired state; the exit code is 1 if they differ.

Through --control-socket the agent reads VPP now. Over TCP it reads VPP at most once in 5 seconds
for all clients, because reading stops the workers of VPP for a moment. The output shows the age of
an older reading. With --watch the exit code is that of the last reading.`,
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var diff api.Diff
		if err := l.Show(cmd, std, func(ctx context.Context, c *cli.Client) (*answer, error) {
			var now api.Diff
			if err := c.Get(ctx, "diff", nil, &now); err != nil {
				return nil, err
			}
			diff = now
			return &answer{now, func(c *cli.Columns) { diffTable(c, now) }}, nil
		}); err != nil {
			return err
		}
		return verdict(diff)
	}
	return cmd
}

// diffTable prints the operations that would bring VPP to the desired state.
func diffTable(c *cli.Columns, diff api.Diff) {
	for _, r := range diff.Renderers {
		switch {
		case r.Error != "":
			c.Row(r.Renderer, "unknown: "+r.Error)
		case len(r.Operations) == 0:
			c.Row(r.Renderer, "VPP is in the desired state")
		}
		for _, op := range r.Operations {
			c.Row(r.Renderer, op)
		}
	}
	if age := time.Since(diff.Time).Truncate(time.Second); age > 0 && !diff.Time.IsZero() {
		c.Section(fmt.Sprintf("VPP was read %s ago; --control-socket PATH reads it now", age))
	}
}

// verdict is an error if there is a difference.
func verdict(diff api.Diff) error {
	for _, r := range diff.Renderers {
		switch {
		case r.Error != "":
			return fmt.Errorf("%s: VPP could not be read: %s", r.Renderer, r.Error)
		case len(r.Operations) > 0:
			return fmt.Errorf("%s: VPP differs from the desired state: %d operations would repair it; on the node, 'troupe resync' repairs it now", r.Renderer, len(r.Operations))
		}
	}
	return nil
}
