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
