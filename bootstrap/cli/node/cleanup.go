package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/link"
)

const cleanupLong = `Cleanup removes the rows, translations, access lists, interface roles, NAT
addresses and routes of the agent from VPP, and its routes from the host. Rows of others stay, and
so do the sessions of connections until they end. It needs no agent and no cluster; an agent that
runs on the node would put everything back.

Flags and the file of --config are those of the agent. NAT addresses of external configuration are
found in its data directory and in its file.`

// cleanup is the output of `troupe cleanup`.
type cleanup struct {
	// DryRun says that nothing was removed.
	DryRun bool `json:"dryRun"`
	// Operations are the changes of VPP in words, in their order.
	Operations []string `json:"operations"`
}

// NewCleanup returns `troupe cleanup`.
func NewCleanup(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "cleanup", Short: "Remove everything of the agent from VPP", Long: cleanupLong, Args: cobra.NoArgs}
	flags := config.AddFlags(cmd) // all, so that a pod of the agent needs another command only
	out := cli.AddFormat(cmd)
	dryRun := cmd.Flags().Bool("dry-run", false, "print what would be removed, and remove nothing")
	stay := cmd.Flags().Bool("stay", false, "do not end after the clean-up, as a pod of a DaemonSet must not, but with SIGTERM")
	timeout := cmd.Flags().Duration("timeout", time.Minute, "how long to wait for VPP")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		doc, err := flags.Load()
		if doc == nil {
			return err
		}
		if err := config.Join(err, doc.Validate()); err != nil {
			return cli.ConfigError(err)
		}
		if at := agentAnswers(cmd.Context(), doc.Agent.API); at != "" && !*dryRun {
			return fmt.Errorf("an agent answers at %s and would put everything back: stop it first", at)
		}
		log := slog.New(slog.DiscardHandler)
		link.Quiet(log)
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), *timeout, fmt.Errorf("not within %s", *timeout))
		defer cancel()
		said, err := agent.CleanUp(ctx, doc.Agent, *dryRun, log)
		report := cleanup{DryRun: *dryRun, Operations: append([]string{}, said...)}
		if err == nil || len(said) > 0 {
			err = errors.Join(err, out.Print(std.Out, report, func(c *cli.Columns) { cleanupTable(c, report) }))
		}
		if err != nil {
			return err
		}
		if *stay {
			<-cmd.Context().Done()
		}
		return nil
	}
	return cmd
}

// cleanupTable prints one line for each operation, and their number.
func cleanupTable(c *cli.Columns, r cleanup) {
	for _, operation := range r.Operations {
		c.Row(operation)
	}
	switch {
	case len(r.Operations) == 0:
		c.Row("VPP has nothing of the agent")
	case r.DryRun:
		c.Row(fmt.Sprintf("%d operations, none carried out", len(r.Operations)))
	default:
		c.Row(fmt.Sprintf("%d operations", len(r.Operations)))
	}
}

// agentAnswers returns the control socket or the address at which an agent listens, "" = neither.
// The control socket of a pod is not seen outside of it, its address on the network of the host is.
func agentAnswers(ctx context.Context, servers config.API) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, at := range [][2]string{{"unix", servers.ControlSocket}, {"tcp", servers.HTTPAddress}} {
		if at[1] == "" {
			continue
		}
		if connection, err := (&net.Dialer{}).DialContext(ctx, at[0], at[1]); err == nil {
			_ = connection.Close()
			return at[1]
		}
	}
	return ""
}
