package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

const simulatorLong = `Simulator runs a simulated VPP 25.10 behind a real binary-API socket, for
tests and for development without VPP. Agents and other GoVPP programs connect to it as to a real
VPP. It starts empty. --topology names a file with the interfaces, pods and routes that a CNI would
add:

  interfaces:
  - name: uplink0
    addresses: [192.168.16.1/24]
    gateway: 192.168.16.254        # the default route leads there
  pods:
  - name: tap-web                  # tap, host route and neighbour
    address: 10.1.1.3
  routes:
  - to: 10.1.2.0/24
    via: 192.168.16.2
    interface: uplink0

After a crash, the simulated VPP starts again with the same topology. It stops on SIGINT and
SIGTERM. Then, and on SIGUSR1, it prints the number of requests for a change and the numbers of rows
of NAT44 and CNAT.`

// NewSimulator returns `troupe simulator`, for tests with an agent in another process.
func NewSimulator(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulator --api-socket PATH",
		Short: "Run a simulated VPP on its own",
		Long:  simulatorLong,
		Args:  cobra.NoArgs,
	}
	socket := cmd.Flags().String("api-socket", "", "path of the binary-API socket to listen on")
	stats := cmd.Flags().String("stats-socket", "", "path of the statistics socket to listen on (default: none)")
	probes := cmd.Flags().String("probe-socket", "", `path of a socket that answers probes, lines "INTERFACE SOURCE DESTINATION" for a TCP connection (default: none)`)
	file := cmd.Flags().String("topology", "", "YAML file with interfaces, pods and routes")
	level := cmd.Flags().String("log-level", "info", "lowest severity of the log: debug, info, warn or error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *socket == "" {
			return cli.Usagef("expected --api-socket PATH")
		}
		if !node.ValidLevel(*level) {
			return cli.Usagef("invalid argument %q for \"--log-level\": expected debug, info, warn or error", *level)
		}
		log := node.NewLog(std.Errs, "text", *level)
		return runSimulator(cmd.Context(), std, log, simulatorFiles{api: *socket, stats: *stats, probes: *probes, topology: *file})
	}
	return cmd
}

// simulatorFiles are the sockets of a simulated VPP and its topology; "" = none.
type simulatorFiles struct{ api, stats, probes, topology string }

// runSimulator runs a simulated VPP until ctx ends.
func runSimulator(ctx context.Context, to cli.Streams, log *slog.Logger, files simulatorFiles) error {
	topology, file := &topology{}, files.topology
	if file != "" {
		content, err := os.ReadFile(file)
		if err == nil {
			topology, err = parseTopology(content)
		}
		if err != nil {
			return fmt.Errorf("read topology %s: %w", file, err)
		}
	}
	if err := topology.build(simulator.New(simulator.Options{})); err != nil {
		// this first build finds errors, which later builds only log
		return fmt.Errorf("build topology %s: %w", file, err)
	}
	vpp := simulator.New(simulator.Options{Logger: log, AutoRestart: true, OnBoot: func(vpp *simulator.VPP) {
		if err := topology.build(vpp); err != nil {
			log.Error("cannot build the topology", "file", file, "err", err)
		}
	}})
	err := vpp.Listen(files.api)
	if err == nil && files.stats != "" {
		err = vpp.ListenStats(files.stats)
	}
	if err == nil && files.probes != "" {
		err = serveProbes(ctx, files.probes, vpp)
	}
	if err != nil {
		return fmt.Errorf("start the simulated VPP: %w", errors.Join(err, vpp.Close()))
	}
	fmt.Fprintf(to.Out, "simulated VPP listens on %s\n", files.api)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	defer signal.Stop(asked)
	for {
		select {
		case <-asked:
			printCounters(to.Out, vpp)
		case <-ctx.Done():
			printCounters(to.Out, vpp)
			return vpp.Close()
		}
	}
}

// printCounters prints the counters of VPP that tests of agents check.
func printCounters(out io.Writer, vpp *simulator.VPP) {
	fmt.Fprintf(out, "mutating %d\nrows %d\n", vpp.Counters().Mutating(), len(vpp.Rows())+vpp.Translations())
}
