package bootstrap

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

const simulatorLong = `Simulator runs a simulated VPP 25.10 behind a real binary-API socket, for tests and for development without VPP. An agent, vppctl-like
tools and GoVPP programs connect to it as to a real one. It stops on SIGINT and SIGTERM.`

func newSimulatorCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulator --api-socket PATH",
		Short: "Run a simulated VPP on its own",
		Long:  simulatorLong,
		Args:  cobra.NoArgs,
	}
	socket := cmd.Flags().String("api-socket", "", "path of the binary-API socket to listen on")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *socket == "" {
			return usagef("expected --api-socket PATH")
		}
		return runSimulator(cmd.Context(), io, *socket)
	}
	return cmd
}

// runSimulator works until ctx ends.
func runSimulator(ctx context.Context, io streams, socket string) error {
	vpp := simulator.New(simulator.Options{Logger: slog.New(slog.NewTextHandler(io.errs, nil)), AutoRestart: true})
	if err := vpp.Listen(socket); err != nil {
		return fmt.Errorf("start the simulated VPP: %w", err)
	}
	fmt.Fprintf(io.out, "simulated VPP listens on %s\n", socket)
	<-ctx.Done()
	return vpp.Close()
}
