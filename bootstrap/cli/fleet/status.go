package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/page"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/kube/podforward"
)

// nodeStatus is one line of `troupe status`.
type nodeStatus struct {
	*api.NodeStatus
	// Error is the reason for a missing answer; "" = the agent has answered.
	Error string `json:"error,omitempty"`
	// Differs are the fields in which the node differs from most nodes.
	Differs []string `json:"differs,omitempty"`
}

// NewStatus returns `troupe status`.
func NewStatus(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show a node, or all nodes, one line each, the worst first", Args: cobra.NoArgs,
		Long: `Show the state of a node in one line. With --all-nodes query the agents of all nodes
through the API server (create of pods/portforward), some at the same time; the worst node comes
first. The exit code is 1 if a node is not ready or has not answered. With --serve show the same on
a web page until Ctrl-C. The page reloads every 10 seconds and uses the rights of the kubeconfig.`,
		Example: "  troupe status --all-nodes\n  troupe status --all-nodes --serve 127.0.0.1:8080",
	}
	f := newFleet(cmd, 15*time.Second)
	all := cmd.Flags().Bool("all-nodes", false, "ask the agents of all nodes through the API server")
	serve := cmd.Flags().String("serve", "", "loopback address and port of a web page of all nodes")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *serve != "" {
			if !*all {
				return cli.Usagef("--serve needs --all-nodes")
			}
			return f.servePage(cmd.Context(), *serve, std)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		var lines []nodeStatus
		var err error
		if *all {
			lines, err = f.statuses(ctx, std.Errs)
		} else {
			lines, err = f.status(ctx)
		}
		if err != nil {
			return err
		}
		if err := f.Out.Print(std.Out, lines, func(c *cli.Columns) { nodeLines(c, lines, time.Now()) }); err != nil {
			return err
		}
		if bad := countBad(lines); bad > 0 {
			return fmt.Errorf("%d of %d nodes are not ready or have not answered", bad, len(lines))
		}
		return nil
	}
	return cmd
}

// status queries one agent.
func (f *fleet) status(ctx context.Context) ([]nodeStatus, error) {
	c, err := f.Client(ctx)
	if err != nil {
		return nil, err
	}
	one := askStatus(ctx, c, f.Node)
	if one.Error != "" {
		return nil, errors.New(one.Error)
	}
	return []nodeStatus{one}, nil
}

// statuses queries all agents; the worst node is first.
func (f *fleet) statuses(ctx context.Context, progress io.Writer) ([]nodeStatus, error) {
	if f.Node != "" || f.Socket != "" {
		return nil, cli.Usagef("--all-nodes excludes --node and --control-socket")
	}
	members, err := f.members(ctx)
	if errors.Is(err, podforward.ErrNoKubeconfig) {
		return nil, fmt.Errorf("%w; 'troupe status' asks this node alone", err)
	}
	if err != nil {
		return nil, err
	}
	lines := make([]nodeStatus, len(members))
	for i, m := range members {
		lines[i] = nodeStatus{NodeStatus: &api.NodeStatus{Node: m.node}, Error: m.problem}
	}
	each(ctx, members, f.timeout, progress, func(ctx context.Context, i int) { lines[i] = askStatus(ctx, members[i].client, members[i].node) })
	return worstNodesFirst(lines), nil
}

// askStatus queries the agent of a node; "" = the node is not known. What answers may have the name
// of another node: that is an error, and the line has the name that the cluster gives. An agent of
// an earlier version has no status; that is an error, too.
func askStatus(ctx context.Context, c *cli.Client, node string) nodeStatus {
	s := nodeStatus{NodeStatus: &api.NodeStatus{}}
	err := c.Limited(cli.NewBudget(mostStatus)).Get(ctx, "status", nil, s.NodeStatus)
	if says := s.Node; err == nil && (node != "" && says != node || !isName(says)) {
		s.NodeStatus = &api.NodeStatus{}
		err = fmt.Errorf("what answers is not the agent of this node: it has the name %q", says)
	} else if err != nil {
		s.NodeStatus = &api.NodeStatus{}
	}
	s.Node = cmp.Or(node, s.Node)
	switch {
	case errors.Is(err, api.ErrNotFound):
		s.Error = "the agent is of a version without status"
	case err != nil && ctx.Err() != nil:
		s.Error = "no answer in time"
	case err != nil:
		s.Error = err.Error()
	}
	return s
}

// badness ranks nodes, the worst highest; 0 = all is well.
func (s *nodeStatus) badness() int {
	notWell := 0
	for state, n := range s.Services {
		if state != api.ServiceInSync {
			notWell += n
		}
	}
	switch {
	case s.Error != "":
		return 1 << 30
	case !s.Ready:
		return 1<<29 + notWell
	case notWell > 0:
		return notWell + 1
	case len(s.Warnings)+len(s.Differs) > 0:
		return 1
	}
	return 0
}

// worstNodesFirst orders nodes and sets Differs, because a node that differs from most nodes may
// run another version or miss services.
func worstNodesFirst(lines []nodeStatus) []nodeStatus {
	for name, field := range map[string]func(*nodeStatus) string{
		"version":  func(s *nodeStatus) string { return s.Version },
		"VPP":      func(s *nodeStatus) string { return s.VPP },
		"services": func(s *nodeStatus) string { return fmt.Sprint(countServices(s.Services)) },
	} {
		counts := map[string]int{}
		answered := 0
		for i := range lines {
			if lines[i].Error == "" {
				counts[field(&lines[i])]++
				answered++
			}
		}
		for i := range lines {
			// two nodes that differ from each other are both marked
			if value := field(&lines[i]); lines[i].Error == "" && 2*counts[value] <= answered && len(counts) > 1 {
				lines[i].Differs = append(lines[i].Differs, name+" "+cmp.Or(value, "none"))
			}
		}
	}
	for i := range lines {
		slices.Sort(lines[i].Differs)
	}
	slices.SortStableFunc(lines, func(a, b nodeStatus) int {
		return cmp.Or(cmp.Compare(b.badness(), a.badness()), strings.Compare(a.Node, b.Node))
	})
	return lines
}

// countServices is the number of services of a node.
func countServices(services map[api.ServiceState]int) (n int) {
	for _, count := range services {
		n += count
	}
	return n
}

// countBad counts the nodes that are not ready or have not answered.
func countBad(lines []nodeStatus) (n int) {
	for i := range lines {
		if lines[i].Error != "" || !lines[i].Ready {
			n++
		}
	}
	return n
}

// restartShown is how long a restart of VPP is shown.
const restartShown = 24 * time.Hour

// columns are the titles of cells.
func columns() []any {
	return []any{"NODE", "READY", "VERSION", "VPP", "SERVED", "OTHERS", "DRAINING", "SESSIONS", "CHANGED", "WHY"}
}

// cells are the cells of a node.
func (s *nodeStatus) cells(now time.Time) []any {
	ready := "no"
	switch {
	case s.Error != "":
		return []any{s.Node, "unknown", "", "", "", "", "", "", "", s.Error}
	case s.Ready:
		ready = "yes"
	}
	var others, why []string
	for _, word := range api.ServedWords() {
		if n := s.Served[word]; n > 0 && word != api.ServedAll {
			others = append(others, fmt.Sprintf("%d %s", n, word))
		}
	}
	for _, state := range []api.ServiceState{api.ServiceQuarantined, api.ServiceFailed} {
		if n := s.Services[state]; n > 0 {
			others = append(others, fmt.Sprintf("%d %s", n, state))
		}
	}
	if n := len(s.Addresses); n > 0 {
		const most = 3
		text := "owns " + strings.Join(s.Addresses[:min(n, most)], ", ")
		if n > most {
			text += fmt.Sprintf(" and %d addresses more", n-most)
		}
		why = append(why, text)
	}
	if s.Reason != "" {
		why = append(why, s.Reason)
	}
	why = append(why, s.Warnings...)
	if s.Restart != nil && now.Sub(s.Restart.Back) < restartShown {
		why = append(why, s.Restart.String())
	} else if now.Sub(s.Started) < restartShown { // a new agent has not seen the restart
		why = append(why, "VPP started "+api.Age(now.Sub(s.Started))+" ago")
	}
	if len(s.Differs) > 0 {
		why = append(why, "differs: "+strings.Join(s.Differs, ", "))
	}
	changed := ""
	if !s.Changed.IsZero() {
		changed = api.Age(now.Sub(s.Changed)) + " ago"
	}
	return []any{
		s.Node, ready, s.Version, s.VPP, s.Served[api.ServedAll], strings.Join(others, ", "), s.Draining, s.Sessions, changed, strings.Join(why, "; "),
	}
}

// nodeLines prints nodes.
func nodeLines(c *cli.Columns, lines []nodeStatus, now time.Time) {
	c.Row(columns()...)
	for i := range lines {
		c.Row(lines[i].cells(now)...)
	}
}

// servePage serves the page of all nodes until ctx ends. The page uses the rights of the user's
// kubeconfig, so it accepts only requests from this machine.
func (f *fleet) servePage(ctx context.Context, address string, std cli.Streams) error {
	if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
		return cli.Usagef("--serve: expected a loopback address and a port, such as 127.0.0.1:8080, got %q", address)
	}
	var one sync.Mutex // one request at a time queries the agents
	pages, err := page.Cluster(func(ctx context.Context) (titles []any, rows [][]any, err error) {
		one.Lock()
		defer one.Unlock()
		ctx, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		lines, err := f.statuses(ctx, io.Discard)
		for i := range lines {
			row := lines[i].cells(time.Now())
			for j, cell := range row {
				row[j] = cli.Printable(fmt.Sprint(cell)) // for a terminal that gets the page
			}
			rows = append(rows, row)
		}
		return columns(), rows, err
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the page of all nodes: %w", err)
	}
	server := &http.Server{Handler: localOnly(pages), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	fmt.Fprintf(std.Out, "all nodes: http://%s/, until Ctrl-C\n", listener.Addr())
	if err := healthcheck.Serve(ctx, server, listener, 0); err != nil {
		return fmt.Errorf("serve the page of all nodes: %w", err)
	}
	return nil
}

// localOnly refuses requests to a host name, because DNS rebinding could lead the name of another
// site here.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at, err := netip.ParseAddrPort(r.Host); err != nil || !at.Addr().IsLoopback() {
			http.Error(w, "use the address that the command has printed", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
