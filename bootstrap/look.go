package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/client"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/podproxy"
)

// newLookCommands returns the commands that query a running agent: `get` with its objects, and the
// objects with a command of their own.
func newLookCommands(std streams) []*cobra.Command {
	get := group("get", "Query a running agent",
		newGetServices(std), newGetService(std), newGetInterfaces(std), newGetNodes(std), newGetSessions(std), newGetActors(std), newGetTree(std),
		newGetEvents(std), newGetDiff(std), newGetResync(std))
	return []*cobra.Command{
		get, newExplainCommand(std), newActorsCommand(std), newGetEvents(std), newGetDiff(std), newTraceCommand(std), newResyncCommand(std),
	}
}

// look is the common part of commands that query an agent: its address, the output format, and
// whether to repeat.
type look struct {
	address, socket             string
	node, namespace, kubeconfig string
	watch                       time.Duration
	out                         *format
}

// newLook adds the flags of a look to a command.
func newLook(cmd *cobra.Command) *look {
	l := newReach(cmd)
	cmd.Flags().DurationVarP(&l.watch, "watch", "w", 0, "query again after this time, and print a changed answer; without a value 2s")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	return l
}

// newReach is newLook without --watch.
func newReach(cmd *cobra.Command) *look {
	defaults := config.Defaults().API
	l := &look{out: addFormat(cmd)}
	cmd.Flags().StringVar(&l.address, "address", defaults.HTTPAddress, "address of the agent's HTTP server")
	cmd.Flags().StringVar(&l.socket, "control-socket", "", "path of the agent's control socket; replaces --address")
	cmd.Flags().StringVar(&l.node, "node", "", "node of the agent to ask, through the proxy of the API server; --address names the port")
	cmd.Flags().StringVar(&l.namespace, "agent-namespace", podproxy.Namespace, "namespace of the agents, with --node")
	cmd.Flags().StringVar(&l.kubeconfig, "kubeconfig", "", "file with the API server's address and credentials, with --node; default: $KUBECONFIG, ~/.kube/config")
	return l
}

// agentFlagsLast moves flags that select the agent behind the command: troupe --node n1 get
// services.
func agentFlagsLast(args []string) []string {
	if len(args) > 2 && strings.HasPrefix(args[0], "__complete") {
		// the last word is the one to complete
		last := len(args) - 1
		return slices.Concat(args[:1], agentFlagsLast(args[1:last]), args[last:])
	}
	var moved []string
	for len(args) > 1 {
		name, _, whole := strings.Cut(args[0], "=")
		if !slices.Contains([]string{"--node", "--agent-namespace", "--kubeconfig", "--address", "--control-socket"}, name) {
			break
		}
		n := 2
		if whole {
			n = 1
		}
		moved, args = append(moved, args[:n]...), args[n:]
	}
	return slices.Concat(args, moved)
}

// client returns a client for the agent.
func (l *look) client(ctx context.Context) (*client.Client, error) {
	switch {
	case l.socket != "" && l.node != "":
		return nil, usagef("--control-socket and --node exclude each other")
	case l.socket != "":
		return client.NewControl(l.socket), nil
	case l.node == "":
		return client.New(strings.TrimPrefix(l.address, "http://")), nil
	}
	way, err := l.proxied()
	if err != nil {
		return nil, err
	}
	agent, err := podproxy.Find(ctx, way)
	if err != nil {
		return nil, err
	}
	return client.NewProxied(agent.Transport, agent.URL, "node "+l.node), nil
}

// proxied is the way to the agents through the API server.
func (l *look) proxied() (podproxy.Config, error) {
	_, port, found := strings.Cut(l.address, ":")
	if !found {
		return podproxy.Config{}, usagef("--address %s: expected HOST:PORT", l.address)
	}
	return podproxy.Config{Kubeconfig: l.kubeconfig, Namespace: l.namespace, Node: l.node, Port: port}, nil
}

// answer is the output of a command: a value, or a table of it.
type answer struct {
	value any
	table func(*columns)
}

// show asks the agent and prints the answer; with --watch it does so until the command is
// interrupted.
func (l *look) show(cmd *cobra.Command, to streams, ask func(ctx context.Context, c *client.Client) (*answer, error)) error {
	ctx := cmd.Context()
	c, err := l.client(ctx)
	if err != nil {
		return err
	}
	a, err := ask(ctx, c)
	if err != nil {
		return err
	}
	if l.watch <= 0 {
		return l.out.print(to.out, a.value, a.table)
	}
	return l.follow(ctx, to, a, func() (*answer, error) { return ask(ctx, c) })
}

// clearScreen moves to the first line of a terminal and clears the rest.
const clearScreen = "\x1b[H\x1b[2J"

// follow prints an answer, and then each answer that differs from the previous one. An error of a
// later query is printed, because an agent that restarts comes back.
func (l *look) follow(ctx context.Context, to streams, a *answer, ask func() (*answer, error)) error {
	s := screenOf(to.out)
	var before []byte
	failed := ""
	for {
		if a != nil {
			var text bytes.Buffer
			if err := l.out.print(&framed{&text, s}, a.value, a.table); err != nil {
				return err
			}
			if !bytes.Equal(text.Bytes(), before) {
				if s.width > 0 {
					fmt.Fprint(to.out, clearScreen)
				} else if before != nil && *l.out != "json" {
					fmt.Fprintln(to.out, "---")
				}
				before = bytes.Clone(text.Bytes())
				if _, err := to.out.Write(before); err != nil {
					return fmt.Errorf("write output: %w", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(l.watch):
		}
		next, err := ask()
		if a = next; err != nil {
			if a = nil; ctx.Err() == nil && err.Error() != failed {
				fmt.Fprintf(to.errs, "troupe: %v\n", err)
				failed = err.Error()
			}
			continue
		}
		failed = ""
	}
}

// fetch is an ask of one resource, with a table of it.
func fetch[T any](resource string, query url.Values, table func(*columns, *T)) func(context.Context, *client.Client) (*answer, error) {
	return func(ctx context.Context, c *client.Client) (*answer, error) {
		value := new(T)
		if err := c.Get(ctx, resource, query, value); err != nil {
			return nil, err
		}
		return &answer{value, func(c *columns) { table(c, value) }}, nil
	}
}

// listFlags adds filter flags to a command and returns a function that reads them.
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

// clock formats a time for a table, in UTC as in the log.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
