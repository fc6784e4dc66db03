package fleet

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
	"github.com/troupe-vpp/troupe/kube/podforward"
)

// Limits of queries of all nodes, in which a node may hang or send as much as it likes.
const (
	// atOnce is the number of nodes that are queried at the same time.
	atOnce = 32
	// perNode is the part of the whole time that one node may take. After perTurn of it the
	// next node has its turn: nodes that hang do not hide the others.
	perNode = 3
	perTurn = 4
	// mostStatus limits the status of a node, in bytes.
	mostStatus = 1 << 20
)

// fleet are the agents of all nodes, through the API server.
type fleet struct {
	*look.Query
	// timeout limits all queries together.
	timeout time.Duration
}

// newFleet adds the flags of a command about all nodes.
func newFleet(cmd *cobra.Command, timeout time.Duration) *fleet {
	f := &fleet{Query: look.NewUnwatched(cmd)}
	cmd.Flags().DurationVar(&f.timeout, "timeout", timeout, "time limit for all nodes together; nodes without an answer are listed with the reason")
	return f
}

// member is one node with the client of its agent; problem is the reason if the node has no agent.
type member struct {
	node, problem string
	client        *cli.Client
}

// members finds the agents of all nodes.
func (f *fleet) members(ctx context.Context) ([]member, error) {
	way, err := f.Way()
	if err != nil {
		return nil, err
	}
	agents, err := podforward.All(ctx, way)
	if err != nil {
		return nil, err
	}
	out := make([]member, len(agents))
	for i := range agents {
		a := &agents[i]
		out[i] = member{a.Node, a.Problem, cli.NewThrough(a.Transport, a.URL, "node "+a.Node)}
	}
	return out, nil
}

// each calls ask for each member with an agent, some at the same time, and shows the progress on a
// terminal. It returns when all calls have returned. ask must return when its ctx ends, which is
// before the whole time ends.
func each(ctx context.Context, members []member, whole time.Duration, progress io.Writer, ask func(ctx context.Context, i int)) {
	var all sync.WaitGroup
	turns, done := make(chan struct{}, atOnce), make(chan struct{}, len(members))
	show := cli.ScreenOf(progress).Width > 0
	for i := range members {
		if members[i].problem != "" {
			done <- struct{}{}
			continue
		}
		all.Go(func() {
			defer func() { done <- struct{}{} }()
			select {
			case turns <- struct{}{}:
				release := sync.OnceFunc(func() { <-turns })
				defer release()
				defer time.AfterFunc(whole/perNode/perTurn, release).Stop()
			case <-ctx.Done():
			}
			ctx, cancel := context.WithTimeout(ctx, whole/perNode)
			defer cancel()
			ask(ctx, i)
		})
	}
	for n := range members {
		<-done
		if show {
			_ = cli.Control(progress, fmt.Sprintf("\r%d of %d nodes ", n+1, len(members)))
		}
	}
	if show {
		_ = cli.Control(progress, "\r\x1b[K")
	}
	all.Wait()
}
