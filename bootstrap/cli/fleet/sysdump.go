package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
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
