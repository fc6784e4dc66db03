package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/link"
)

const cleanupLong = `Cleanup removes the rows, translations, access lists and routes of the agent
from VPP, and its routes from the host. It removes interface roles, NAT addresses and settings of
CNAT only if the record in the agent's data directory says that the agent has made them; it lists
the others as kept. It keeps rows of other owners, global settings of VPP's plugins, and the
sessions of connections until they end. It needs no cluster. Stop the agent first: the command takes
the lock of VPP and refuses to run while an agent has it, because that would restore everything.

The flags and the file of --config are the same as for the agent; --data-dir leads to the record.`

// cleanup is the output of `troupe cleanup`.
type cleanup struct {
	// DryRun is true if nothing was removed.
	DryRun bool `json:"dryRun"`
	// Operations are the changes of VPP in words, in the order of their execution.
	Operations []string `json:"operations"`
	// Kept are objects that stay, because nothing proves that the agent has made them.
	Kept []string `json:"kept"`
}

// NewCleanup returns `troupe cleanup`.
func NewCleanup(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "cleanup", Short: "Remove everything of the agent from VPP", Long: cleanupLong, Args: cobra.NoArgs}
	flags := config.AddFlags(cmd) // all flags of the agent
	out := cli.AddFormat(cmd)
	dryRun := cmd.Flags().Bool("dry-run", false, "print the operations, and execute none")
	stay := cmd.Flags().Bool("stay", false, "wait for SIGTERM after the clean-up, because the pod of a DaemonSet must not end")
	timeout := cmd.Flags().Duration("timeout", time.Minute, "time limit for VPP")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		doc, err := flags.Load()
		if doc == nil {
			return err
		}
		if err := config.Join(err, doc.Validate()); err != nil {
			return cli.ConfigError(err)
		}
		log := slog.New(slog.DiscardHandler)
		link.Quiet(log)
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), *timeout, fmt.Errorf("not within %s", *timeout))
		defer cancel()
		said, kept, err := agent.CleanUp(ctx, doc.Agent, *dryRun, log)
		report := cleanup{DryRun: *dryRun, Operations: append([]string{}, said...), Kept: append([]string{}, kept...)}
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
	for _, kept := range r.Kept {
		c.Row(kept)
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
