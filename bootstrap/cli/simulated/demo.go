package simulated

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
	"github.com/troupe-vpp/troupe/bootstrap/demo"
)

const demoLong = `Demo runs the whole agent in one process: an embedded etcd, a simulated VPP behind
a real binary-API socket, and the cluster of a small shop. It programs every service, sends probe
packets, kills actors, prints the results, and then serves its state until Ctrl-C.`

// NewDemo returns `troupe demo`.
func NewDemo(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "demo", Short: "Run an agent with a simulated VPP in one process and verify it", Long: demoLong, Args: cobra.NoArgs}
	out := cli.AddFormat(cmd)
	options := demo.Options{Started: started, Out: std.Out}
	f := cmd.Flags()
	f.StringVar(&options.NodeName, "node-name", "shop-a", "node of the agent")
	f.StringVar(&options.Cluster, "cluster", "", "directory with the YAML files of a cluster (default: the built-in shop)")
	f.StringVar(&options.HTTPAddress, "http-address", "127.0.0.1:9990", "address at which the agent serves its state; if it is in use, the agent takes a free port")
	f.BoolVar(&options.Exit, "exit", false, "stop after the checks; the exit code is 0 only if all checks passed")
	level := f.String("log-level", "error", "lowest severity of the agent's log: debug, info, warn or error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *out == "yaml" {
			return cli.Usagef("invalid argument \"yaml\" for -o: expected one of table, json")
		}
		if !node.ValidLevel(*level) {
			return cli.Usagef("invalid argument %q for \"--log-level\": expected debug, info, warn or error", *level)
		}
		options.Format = *out
		options.Log = node.NewLog(std.Errs, "text", *level)
		node.Quiet(options.Log)
		if err := demo.Run(cmd.Context(), options); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		return nil
	}
	return cmd
}

// started is the start time of this process.
var started = time.Now()
