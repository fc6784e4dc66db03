package look

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/podforward"
)

// Commands returns the commands that query a running agent: `get` with one command for each kind of
// object, and shorter commands for some of them.
func Commands(std cli.Streams) []*cobra.Command {
	get := cli.Group("get", "Query a running agent",
		newGetServices(std), newGetService(std), newGetSessions(std), newGetActors(std), newGetTree(std), newGetEvents(std), newGetDiff(std),
		newQuery(std, "interfaces", "List the interfaces of VPP with their roles", whole[api.Interfaces, api.Interface]("interfaces", interfacesTable)),
		newQuery(std, "addresses", "List the load-balancer addresses of pools, and which of them this node owns", whole[api.Addresses, api.Address]("addresses", addressesTable)),
		newQuery(std, "nodes", "List the nodes of the cluster with their IDs and addresses", whole[api.Nodes, api.Node]("nodes", nodesTable)),
		newQuery(std, "resync", "Show the progress of the renderers, and repairs", Fetch("resync", nil, resyncTable)))
	return []*cobra.Command{
		get, newExplainCommand(std), newActorsCommand(std), newGetEvents(std), newGetDiff(std), newTraceCommand(std), newResyncCommand(std),
	}
}

// Query is the common part of commands that query an agent: its address, the output format, and
// whether to repeat.
type Query struct {
	// Socket is the path of the control socket; "" = TCP.
	Socket string
	// Node is the node of the agent, behind the API server; "" = without the API server.
	Node string
	// Kubeconfig is the file for the API server; "" = the file that kubectl uses.
	Kubeconfig string
	// Out is the format of the output.
	Out                *cli.Format
	address, namespace string
	socketOfUser       string // used without Socket and Node
	watch              time.Duration
}

// agentVariable is the environment variable that has the address, or the path of the control
// socket, of the agent that a user asks.
const agentVariable = "TROUPE_AGENT"

// agentOfUser replaces one of the defaults by the value of agentVariable, if it is set.
func agentOfUser(address, socket string) (string, string) {
	switch value := os.Getenv(agentVariable); {
	case value == "":
		return address, socket
	case strings.Contains(value, ":"):
		return value, socket
	default:
		return address, value
	}
}

// New adds the flags of a query to a command.
func New(cmd *cobra.Command) *Query {
	l := NewUnwatched(cmd)
	cmd.Flags().DurationVarP(&l.watch, "watch", "w", 0, "query again after this time, and print a changed answer; without a value 2s")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	return l
}

// NewUnwatched is New without --watch.
func NewUnwatched(cmd *cobra.Command) *Query {
	defaults := config.Defaults().API
	l := &Query{Out: cli.AddFormat(cmd)}
	address, socket := agentOfUser(defaults.HTTPAddress, "")
	cmd.Flags().StringVar(&l.address, "address", address, "address of the agent's HTTP server; default: $"+agentVariable+", if it is no path")
	cmd.Flags().StringVar(&l.Socket, "control-socket", "", "path of the agent's control socket; replaces --address; default: $"+agentVariable+", if it is a path")
	l.socketOfUser = socket
	cmd.Flags().StringVar(&l.Node, "node", "", "node of the agent to ask, through the API server; --address names the port")
	cmd.Flags().StringVar(&l.namespace, "agent-namespace", podforward.Namespace, "namespace of the agents, with --node")
	cmd.Flags().StringVar(&l.Kubeconfig, "kubeconfig", "", "file with the API server's address and credentials, with --node; default: $KUBECONFIG, ~/.kube/config")
	return l
}

// AgentFlagsLast moves flags that select the agent behind the command: troupe --node n1 get
// services.
func AgentFlagsLast(args []string) []string {
	if len(args) > 2 && strings.HasPrefix(args[0], "__complete") {
		// the shell completes the last word
		last := len(args) - 1
		return slices.Concat(args[:1], AgentFlagsLast(args[1:last]), args[last:])
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

// Client returns a client for the agent.
func (l *Query) Client(ctx context.Context) (*cli.Client, error) {
	switch {
	case l.Socket != "" && l.Node != "":
		return nil, cli.Usagef("--control-socket and --node exclude each other")
	case l.Socket != "":
		return cli.NewControl(l.Socket), nil
	case l.Node == "" && l.socketOfUser != "":
		return cli.NewControl(l.socketOfUser), nil
	case l.Node == "":
		return cli.NewClient(strings.TrimPrefix(l.address, "http://")), nil
	}
	way, err := l.Way()
	if err != nil {
		return nil, err
	}
	agent, err := podforward.Find(ctx, way)
	if err != nil {
		return nil, err
	}
	return cli.NewThrough(agent.Transport, agent.URL, "node "+l.Node), nil
}

// Way returns the access to the agents through the API server.
func (l *Query) Way() (podforward.Config, error) {
	_, port, found := strings.Cut(l.address, ":")
	if !found {
		return podforward.Config{}, cli.Usagef("--address %s: expected HOST:PORT", l.address)
	}
	return podforward.Config{Kubeconfig: l.Kubeconfig, Namespace: l.namespace, Node: l.Node, Port: port}, nil
}

// answer is the output of a command: a value, or a table of it.
type answer struct {
	value any
	table func(*cli.Columns)
}

// Show asks the agent and prints the answer. With --watch it repeats this until the command is
// interrupted.
func (l *Query) Show(cmd *cobra.Command, to cli.Streams, ask asking) error {
	ctx := cmd.Context()
	c, err := l.Client(ctx)
	if err != nil {
		return err
	}
	a, err := ask(ctx, c)
	if err != nil {
		return err
	}
	if l.watch <= 0 {
		return l.Out.Print(to.Out, a.value, a.table)
	}
	return l.follow(ctx, to, a, func() (*answer, error) { return ask(ctx, c) })
}

// clearScreen moves to the first line of a terminal and clears the rest.
const clearScreen = "\x1b[H\x1b[2J"

// follow prints an answer, and then each answer that differs from the previous one. An error of a
// later query is printed, because an agent that restarts comes back.
func (l *Query) follow(ctx context.Context, to cli.Streams, a *answer, ask func() (*answer, error)) error {
	s := cli.ScreenOf(to.Out)
	var before, shown []byte // the value and the text of the last answer
	failed := ""
	for {
		if a != nil {
			value, err := json.Marshal(a.value)
			if err != nil {
				return fmt.Errorf("encode the answer: %w", err)
			}
			var text bytes.Buffer
			if err := l.Out.Print(&cli.Framed{Writer: &text, Screen: s}, a.value, a.table); err != nil {
				return err
			}
			// without a terminal, the ages in a text are no change
			if changed := !bytes.Equal(value, before); changed || s.Width > 0 && !bytes.Equal(text.Bytes(), shown) {
				if s.Width > 0 {
					_ = cli.Control(to.Out, clearScreen)
				} else if before != nil && *l.Out != "json" {
					fmt.Fprintln(to.Out, "---")
				}
				before, shown = value, bytes.Clone(text.Bytes())
				if err := cli.Control(to.Out, string(shown)); err != nil { // Print has made it safe
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
				fmt.Fprintf(to.Errs, "troupe: %v\n", err)
				failed = err.Error()
			}
			continue
		}
		failed = ""
	}
}

// asking asks an agent for the answer of a command.
type asking = func(context.Context, *cli.Client) (*answer, error)

// Fetch asks for one resource, with a table of it.
func Fetch[T any](resource string, query url.Values, table func(*cli.Columns, *T)) asking {
	return func(ctx context.Context, c *cli.Client) (*answer, error) {
		value := new(T)
		return answered(value, c.Get(ctx, resource, query, value), table)
	}
}

// whole is Fetch for a resource whose list has pages.
func whole[T, I any, P api.Paged[T, I]](resource string, table func(*cli.Columns, *T)) asking {
	return func(ctx context.Context, c *cli.Client) (*answer, error) {
		value, err := cli.Whole[T, I, P](ctx, c, resource)
		return answered(value, err, table)
	}
}

// answered is a value with its table, or an error.
func answered[T any](value *T, err error, table func(*cli.Columns, *T)) (*answer, error) {
	return &answer{value, func(c *cli.Columns) { table(c, value) }}, err
}

// newQuery returns a command that shows one answer and has no arguments.
func newQuery(std cli.Streams, use, short string, ask asking) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return l.Show(cmd, std, ask) }
	return cmd
}

// listFlags adds filter flags to a command and returns a function that reads them.
func listFlags(cmd *cobra.Command, filters ...string) func() url.Values {
	for _, name := range filters {
		cmd.Flags().StringP(name, map[string]string{"namespace": "n"}[name], "", "only with this "+name)
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

// Control is the part of a command that changes something in an agent.
type Control struct {
	socket string
	// Out is the format of the output.
	Out *cli.Format
}

// NewControl adds the common flags of state-changing commands.
func NewControl(cmd *cobra.Command) *Control {
	c := &Control{Out: cli.AddFormat(cmd)}
	_, socket := agentOfUser("", config.Defaults().API.ControlSocket)
	cmd.Flags().StringVar(&c.socket, "control-socket", socket, "path of the agent's control socket; default: $"+agentVariable+", if it is a path")
	return c
}

// Client returns a client of the control socket.
func (c *Control) Client() *cli.Client { return cli.NewControl(c.socket) }

// Limits of a completion, which must not make a shell wait.
const (
	completeTimeout = 2 * time.Second
	mostCompletions = 1000
)

// CompleteServices completes the name of a service from the services that the agent knows.
func CompleteServices(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, args, typed, "services", func(s *api.Service) string { return s.Key })
}

// completeActors completes the path of an actor.
func completeActors(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, args, typed, "actors", func(a *api.Actor) string { return a.Path })
}

// complete asks the same agent as the command. Without an answer there are no names.
func complete[T any](cmd *cobra.Command, args []string, typed, resource string, name func(*T) string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	l := &Query{}
	_, l.socketOfUser = agentOfUser("", "")
	for flag, value := range map[string]*string{
		"address": &l.address, "control-socket": &l.Socket, "node": &l.Node, "agent-namespace": &l.namespace, "kubeconfig": &l.Kubeconfig,
	} {
		*value, _ = cmd.Flags().GetString(flag) // all completed commands have these flags
	}
	parent := cmd.Context()
	if parent == nil { // cobra has no context during completion
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completeTimeout)
	defer cancel()
	c, err := l.Client(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _, err := cli.All[T](ctx, c, resource, nil, 0)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range all {
		// a shell may run what it completes, and an agent may name its objects as it likes
		if text := name(&all[i]); strings.HasPrefix(text, typed) && isPath(text) && len(names) < mostCompletions {
			names = append(names, text)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// isPath reports whether a text has the characters of names, keys and paths only.
func isPath(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._/~", r))
	})
}
