package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/page"
)

// mostSize is the largest --size-limit, in MiB: 'troupe look' reads no larger archive.
const mostSize = 256

// NewSysdump returns `troupe sysdump`.
func NewSysdump(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sysdump", Short: "Write the state of all agents into one archive", Args: cobra.NoArgs,
		Long: `Query the agents of all nodes through the API server (create of pods/portforward), or one
agent with --node, --one or --control-socket, and write their answers into one archive: readiness,
services, rows, interfaces, nodes, journal, actors, differences to VPP, metrics. The archive has
no states of actors, no contents of messages, no sessions of clients and no documents of external
configuration. 'troupe look ARCHIVE' opens it.`,
		Example: "  troupe sysdump --file dump.tar.gz",
	}
	f := newFleet(cmd, 2*time.Minute)
	file := cmd.Flags().String("file", "", "file to write (default: troupe-sysdump-TIME.tar.gz)")
	size := cmd.Flags().Int64("size-limit", 256, "size limit of the answers of all nodes together, in MiB; each node has an equal share")
	single := cmd.Flags().Bool("one", false, "query only the agent at --address")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *size < 1 || *size > mostSize {
			return cli.Usagef("--size-limit %d: expected 1 to %d", *size, mostSize)
		}
		now := time.Now().UTC()
		if *file == "" {
			*file = "troupe-sysdump-" + now.Format("20060102T150405Z") + ".tar.gz"
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		members, err := f.chosen(ctx, *single)
		if err != nil {
			return err
		}
		nodes, missing := f.dump(ctx, members, *size<<20, std)
		if len(nodes) == 0 {
			return fmt.Errorf("no agent has answered: %s", firstOf(missing))
		}
		if err := writeDump(*file, dumpManifest{Time: now, Version: api.ReadBuild().Version, Missing: missing}, nodes); err != nil {
			return err
		}
		return f.Out.Print(std.Out, struct {
			File    string            `json:"file"`
			Nodes   int               `json:"nodes"`
			Missing map[string]string `json:"missing"`
		}{*file, len(nodes), missing}, func(c *cli.Columns) {
			for _, n := range nodes {
				for _, e := range n.Errors {
					c.Row("node " + n.Name + ": not in the archive: " + e)
				}
			}
			for _, m := range members {
				if why := missing[m.node]; why != "" {
					c.Row("node " + m.node + ": " + why)
				}
			}
			c.Row(fmt.Sprintf("%s has %d of %d nodes; open it with: troupe look %s", *file, len(nodes), len(members), *file))
		})
	}
	return cmd
}

// chosen are the agents to query: the agent that a flag names, or all.
func (f *fleet) chosen(ctx context.Context, single bool) ([]member, error) {
	if !single && f.Node == "" && f.Socket == "" {
		return f.members(ctx)
	}
	c, err := f.Client(ctx)
	if err != nil {
		return nil, err
	}
	return []member{{node: f.Node, client: c}}, nil
}

// dump collects the nodes; missing has the nodes without an answer, with the reason. Each node may
// send its share of the limit.
func (f *fleet) dump(ctx context.Context, members []member, limit int64, std cli.Streams) (nodes []*api.Dump, missing map[string]string) {
	found := make([]*api.Dump, len(members))
	each(ctx, members, f.timeout, std.Errs, func(ctx context.Context, i int) {
		s := askStatus(ctx, members[i].client, members[i].node)
		if members[i].problem = s.Error; s.Error == "" {
			members[i].node = s.Node
			found[i] = collect(ctx, members[i].client, s.Node, limit/int64(len(members)))
		}
	})
	missing = map[string]string{}
	for i, n := range found {
		if n == nil {
			missing[members[i].node] = members[i].problem
		} else {
			nodes = append(nodes, n)
		}
	}
	return nodes, missing
}

// firstOf is one of the nodes without an answer.
func firstOf(missing map[string]string) string {
	for node, why := range missing {
		return "node " + node + ": " + why
	}
	return ""
}

// writeDump writes an archive that only its owner can read. After an error there is no file.
func writeDump(path string, m dumpManifest, nodes []*api.Dump) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := errors.Join(writeArchive(f, m, nodes), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write archive %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// NewLook returns `troupe look`.
func NewLook(std cli.Streams, run func(context.Context, []string, cli.Streams) int) *cobra.Command {
	cmd := &cobra.Command{
		Use: "look ARCHIVE [COMMAND...]", Short: "Open an archive of 'troupe sysdump'", Args: cobra.MinimumNArgs(1),
		Long: `Open an archive of 'troupe sysdump', without a cluster. A command, for example
'get services' or 'status', reads the archive instead of an agent. Without a command, list the nodes
and serve the web page of each node until Ctrl-C.`,
		Example: "  troupe look dump.tar.gz\n  troupe look --node n1 dump.tar.gz get services --state failed",
	}
	node := cmd.Flags().String("node", "", "node for the command; required if the archive has several nodes")
	cmd.Flags().SetInterspersed(false) // flags behind the archive belong to the command
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		manifest, nodes, err := readDump(args[0])
		if err != nil {
			return err
		}
		command := args[1:]
		if len(command) > 1 && command[0] == "--node" {
			*node, command = command[1], command[2:]
		}
		if len(command) == 0 || command[0] == "status" && *node == "" {
			lines := archivedLines(manifest, nodes)
			c := cli.NewColumns(std.Out, cli.ScreenOf(std.Out))
			c.Paragraph("Archive of " + api.Clock(manifest.Time) + "\n\n")
			nodeLines(c, lines, manifest.Time)
			if err := c.Flush(); err != nil || len(command) > 0 {
				return err
			}
			return serveArchive(cmd.Context(), nodes, std)
		}
		i := slices.IndexFunc(nodes, func(n *api.Dump) bool { return n.Name == *node || *node == "" && len(nodes) == 1 })
		if i < 0 {
			return cli.Usagef("expected --node NODE: the archive has %s", namesOf(nodes))
		}
		return askArchive(cmd.Context(), nodes[i], command, std, run)
	}
	return cmd
}

// readDump reads an archive.
func readDump(path string) (*dumpManifest, []*api.Dump, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read archive: %w", err)
	}
	defer f.Close()
	manifest, nodes, err := readArchive(f)
	if err != nil {
		return nil, nil, fmt.Errorf("read archive %s: %w", path, err)
	}
	return manifest, nodes, nil
}

// archivedLines are the lines of all nodes, including nodes without an answer.
func archivedLines(manifest *dumpManifest, nodes []*api.Dump) []nodeStatus {
	var lines []nodeStatus
	for node, why := range manifest.Missing {
		lines = append(lines, nodeStatus{NodeStatus: &api.NodeStatus{Node: node}, Error: why})
	}
	for _, n := range nodes {
		line := nodeStatus{NodeStatus: n.Status}
		if n.Status == nil {
			line = nodeStatus{NodeStatus: &api.NodeStatus{Node: n.Name}, Error: strings.Join(n.Errors, "; ")}
		}
		lines = append(lines, line)
	}
	return worstNodesFirst(lines)
}

// namesOf lists nodes.
func namesOf(nodes []*api.Dump) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return strings.Join(names, ", ")
}

// archived answers in the place of an agent. An archive has no control socket, so its Controller is
// nil.
type archived struct {
	api.Controller
	api.Dumped
}

// newArchived returns the backend of a node in an archive.
func newArchived(n *api.Dump) archived {
	return archived{Dumped: api.NewDumped(func() *api.Dump { return n })}
}

// archiveServer listens and answers in the place of the agent of a node.
func archiveServer(n *api.Dump) (*server.Server, error) {
	backend := newArchived(n)
	pages, err := page.Handler(page.Config{Source: backend, Node: n.Name, History: &page.History{}})
	if err != nil {
		return nil, err
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(n.Metrics)) // a client that is gone needs no answer
	})
	s := server.New(backend, server.Config{HTTPAddress: "127.0.0.1:0", Page: pages, Metrics: metrics}, slog.New(slog.DiscardHandler))
	return s, s.Listen()
}

// serveArchive serves the pages of all nodes until ctx ends.
func serveArchive(ctx context.Context, nodes []*api.Dump, std cli.Streams) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	errs := make([]error, len(nodes))
	c := cli.NewColumns(std.Out, cli.ScreenOf(std.Out))
	c.Section("Pages, until Ctrl-C")
	for i, n := range nodes {
		s, err := archiveServer(n)
		if err != nil {
			stop()
			all.Wait()
			return err
		}
		c.Row(n.Name, "http://"+s.Addr().String()+"/")
		all.Go(func() { errs[i] = s.Serve(ctx) })
	}
	err := c.Flush()
	all.Wait()
	return errors.Join(append(errs, err)...)
}

// askArchive runs a command that queries a node in an archive; run returns its exit code.
func askArchive(ctx context.Context, n *api.Dump, command []string, to cli.Streams, run func(context.Context, []string, cli.Streams) int) error {
	s, err := archiveServer(n)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Serve(serving) }()
	asking, cancel := context.WithTimeout(ctx, time.Minute)
	code := run(asking, append(command, "--address", s.Addr().String()), to)
	cancel()
	stop()
	if err := <-done; err != nil {
		return err
	}
	if code != 0 { // the command has printed the reason
		return cli.Logged(fmt.Errorf("exit code %d", code))
	}
	return nil
}
