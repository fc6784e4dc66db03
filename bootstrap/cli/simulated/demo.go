package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/connector"
	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/deploy/demo"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

const demoLong = `Demo runs the whole agent in one process: an embedded etcd, a simulated VPP behind
a real binary-API socket, and the cluster of a small shop. It programs every service, sends probe
packets, kills actors, prints the results, and then serves its state until Ctrl-C.`

// NewDemo returns `troupe demo`.
func NewDemo(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "demo", Short: "Run an agent with a simulated VPP in one process and verify it", Long: demoLong, Args: cobra.NoArgs}
	out := cli.AddFormat(cmd)
	options := demoOptions{Started: started, Out: std.Out}
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
		if err := runDemo(cmd.Context(), options); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		return nil
	}
	return cmd
}

// started is the start time of this process.
var started = time.Now()

// Errors of the demo.
var (
	// ErrFailed means that a check failed; the report names it.
	ErrFailed = errors.New("a check of the demo failed")
	// ErrInterrupted means that the context ended before the verification.
	ErrInterrupted = errors.New("interrupted before the checks were done")
	// ErrCluster means that the directory or the node in it does not exist.
	ErrCluster = errors.New("no such cluster")
)

// demoOptions configure the demo.
type demoOptions struct {
	// NodeName is the node of the agent; Cluster is the directory with its cluster, "" = the
	// built-in one.
	NodeName, Cluster string
	// HTTPAddress is the address of the agent's HTTP server; if it is in use, the agent takes a
	// free port.
	HTTPAddress string
	// Exit ends the demo after the verification, instead of at the end of the context.
	Exit bool
	// Format of the output; json is the report only.
	Format cli.Format
	// Started is the start time of the process.
	Started time.Time
	// Out gets the report, Log the log of the agent.
	Out io.Writer
	Log *slog.Logger

	blind bool // disables drift checks, so that they do not repair the damage of a test
}

// runDemo runs the demo until the verification is done (demoOptions.Exit) or ctx ends. The error is
// nil only if all checks passed.
func runDemo(ctx context.Context, o demoOptions) error {
	dir, err := os.MkdirTemp("", "troupe-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	builtIn := o.Cluster == ""
	services, err := o.cluster(dir)
	if err != nil {
		return err
	}
	if builtIn {
		c, outside, err := o.outside(dir)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // its files are deleted
		services += outside
	}
	a, err := start(&o, dir)
	if err != nil {
		return err
	}
	s := &stage{Agent: a, services: services, quiet: quietFor}
	if o.Format != "json" {
		s.step = func(text string) { fmt.Fprintf(o.Out, "%5.1fs  %s\n", time.Since(o.Started).Seconds(), text) }
	}
	s.tell("the agent runs, with its page at http://%s", a.HTTPAddress())
	return errors.Join(play(ctx, s, &o), a.Close())
}

// play verifies a running agent and prints the report. It ends with the agent.
func play(ctx context.Context, a *stage, o *demoOptions) error {
	alive, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		end(a.Wait(alive))
	}()
	defer func() {
		end(nil)
		<-watched
	}()
	report, err := a.prove(alive, o.Started)
	switch cause := context.Cause(alive); {
	case ctx.Err() != nil:
		return ErrInterrupted
	case cause != nil:
		return cause
	case err != nil:
		return err
	}
	wide := o.Format == "wide"
	if !wide && o.Format != "json" {
		fmt.Fprintln(o.Out)
	}
	if err := o.Format.Print(o.Out, report, func(c *cli.Columns) { report.table(c, wide) }); err != nil {
		return err
	}
	if !o.Exit {
		if o.Format != "json" {
			fmt.Fprintf(o.Out, "\nThe agent runs until Ctrl-C: look at http://%s, or ask it in another terminal with\n"+
				"  go run . get services --address %s\n", a.HTTPAddress(), a.HTTPAddress())
		}
		<-alive.Done()
	}
	switch cause := context.Cause(alive); {
	case cause != nil && ctx.Err() == nil:
		return cause
	case !report.OK:
		return ErrFailed
	default:
		return nil
	}
}

// start starts the agent with an embedded etcd and a simulated VPP.
func start(o *demoOptions, dir string) (*agent.Agent, error) {
	cfg := config.Defaults()
	cfg.NodeName = o.NodeName
	cfg.Kubernetes.Source = config.SourceFilesPrefix + o.Cluster
	cfg.VPP.Mode = config.VPPSimulated
	cfg.Etcd.Mode, cfg.Etcd.DataDir = config.EtcdEmbedded, filepath.Join(dir, "etcd")
	cfg.Services.ServiceCIDRs, cfg.Services.ClusterCIDRs = []string{"10.96.0.0/16"}, []string{"10.1.0.0/16"}
	cfg.API.HTTPAddress, cfg.API.ControlSocket = o.HTTPAddress, filepath.Join(dir, "control.sock")
	cfg.API.EnableChaos, cfg.API.HealthzBindAddress = true, ""
	if o.blind {
		cfg.Healing.DriftCheckLeast = cfg.Healing.DriftCheckInterval
	}
	a, err := agent.Start(cfg, o.Log)
	if errors.Is(err, syscall.EADDRINUSE) {
		// the default port is in use, for example by another demo
		cfg.API.HTTPAddress = "127.0.0.1:0"
		return agent.Start(cfg, o.Log)
	}
	return a, err
}

// cluster finds the cluster of the options, or unpacks the built-in cluster below dir. A missing
// cluster or node is an error, because an agent would wait for it without limit. The result is the
// number of services that the node handles, without headless services, for example.
func (o *demoOptions) cluster(dir string) (services int, err error) {
	if o.Cluster == "" {
		o.Cluster = filepath.Join(dir, "cluster")
		if err := unpack(o.Cluster); err != nil {
			return 0, fmt.Errorf("unpack the cluster: %w", err)
		}
	}
	objects, _, err := plan.Read([]string{o.Cluster}, nil)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCluster, err)
	}
	if _, _, err := plan.Build(objects, plan.Options{Node: o.NodeName}); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCluster, err)
	}
	return len(kube.Collect(o.NodeName, objects.Select(o.NodeName), nil).GetServices()), nil
}

// unpack writes the built-in cluster to a directory. The agent reads it like any source of files.
func unpack(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := demo.Files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := fs.ReadFile(demo.Files, e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// outside starts a connector that adds the services of the catalog to the built-in cluster below
// dir, and returns the number of these services. It writes files beside the files of the cluster,
// as for a cluster without an API server.
func (o *demoOptions) outside(dir string) (*connector.Connector, int, error) {
	files, err := fs.Sub(demo.Catalog, "catalog")
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "catalog"), files)
	}
	if err != nil {
		return nil, 0, err
	}
	text, err := fs.ReadFile(files, "catalog.yaml")
	if err != nil {
		return nil, 0, err
	}
	services, errs := catalog.DecodeYAML(text)
	if len(errs) > 0 {
		return nil, 0, errors.Join(errs...)
	}
	c, err := connector.Start(&connector.Config{
		Sources: []string{"yaml=" + filepath.Join(dir, "catalog")}, Namespace: "outside", Output: connector.OutputDirect, Directory: o.Cluster,
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.200.0/24")}, DeleteLimit: 30,
	}, true, o.Log.With("part", "connector"))
	if err != nil {
		return nil, 0, err
	}
	// The agent starts after all objects are written: a write during a drill would count as an
	// effect of the fault.
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		written, err := filepath.Glob(filepath.Join(o.Cluster, "endpointslice-*.yaml"))
		if err == nil && len(written) < len(services) && time.Since(began) > settleTimeout {
			err = fmt.Errorf("the connector has written %d of %d services", len(written), len(services))
		}
		if err != nil {
			return nil, 0, errors.Join(err, c.Close())
		}
		if len(written) >= len(services) {
			return c, len(services), nil
		}
	}
}
