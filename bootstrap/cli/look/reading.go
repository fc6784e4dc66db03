package look

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// reading is VPP's side of an explanation. The agent remembers what it has read and written, and
// another program may have changed VPP since.
type reading struct {
	// Asked is when VPP was read for the explanation. Unread is why it was not; "" = it was.
	Asked  time.Time `json:"vppRead,omitzero"`
	Unread string    `json:"vppUnread,omitempty"`
	// Differences are the operations on the frontends that would repair VPP.
	Differences []string `json:"differences"`
	// Standings are the standings of the frontends that differ.
	Standings map[string]string `json:"-"`
}

// read lets the agent read VPP, and compares some frontends. Over TCP the reading may be some
// seconds old.
func read(ctx context.Context, c *cli.Client, frontends ...string) (r reading) {
	r.Differences, r.Standings = []string{}, map[string]string{}
	var diff api.Diff
	if err := c.Get(ctx, "diff", nil, &diff); err != nil {
		r.Unread = err.Error()
		return r
	}
	r.Asked = diff.Time
	for _, renderer := range diff.Renderers {
		if renderer.Error != "" {
			r.Unread = renderer.Renderer + ": " + renderer.Error
		}
		for i, op := range renderer.Operations[:min(len(renderer.Operations), len(renderer.Objects))] {
			found := false
			for _, f := range frontends {
				if !concerns(renderer.Objects[i], f) {
					continue
				}
				found = true
				if slices.Contains(renderer.Missing, f) {
					r.Standings[f] = api.Missing
				} else {
					r.Standings[f] = cmp.Or(r.Standings[f], api.OtherThanWanted)
				}
			}
			if found {
				r.Differences = append(r.Differences, op)
			}
		}
	}
	return r
}

// concerns reports whether an object is a frontend, or the network of a route to it alone.
func concerns(object, frontend string) bool {
	at, _, _ := strings.Cut(frontend, "/")
	to, err := netip.ParseAddrPort(at)
	return object == frontend || err == nil && object == netip.PrefixFrom(to.Addr(), to.Addr().BitLen()).String()
}

// standing is the standing of a frontend's row in the reading. known is what the agent remembers.
func (r *reading) standing(frontend, known string) string {
	return cmp.Or(r.Standings[frontend], known)
}

// table prints when VPP was read.
func (r *reading) table(c *cli.Columns) {
	if r.Unread != "" {
		c.Row("VPP:", "not read, so this is what the agent remembers of it: "+r.Unread)
		return
	}
	c.Row("VPP:", "read "+api.Ago(r.Asked))
}

// repairs prints the differences and the command that repairs them.
func (r *reading) repairs(c *cli.Columns) {
	if len(r.Differences) == 0 {
		return
	}
	c.Section("VPP differs from what the agent remembers; on the node, 'troupe resync' repairs it now")
	for _, op := range r.Differences {
		c.Row(op)
	}
}

// newGetDiff returns `troupe get diff` and `troupe diff`. Its exit code is 1 if VPP differs, for
// scripts that wait for convergence.
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
