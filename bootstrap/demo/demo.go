package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// Errors of Run.
var (
	// ErrFailed means that a check failed; the report names it.
	ErrFailed = errors.New("a check of the demo failed")
	// ErrInterrupted means that the context ended before the verification.
	ErrInterrupted = errors.New("interrupted before the checks were done")
	// ErrCluster means that the directory or the node in it does not exist.
	ErrCluster = errors.New("no such cluster")
)

// Options configure the demo.
type Options struct {
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

// Run runs the demo until the verification is done (Options.Exit) or ctx ends. The error is nil
// only if all checks passed.
func Run(ctx context.Context, o Options) error {
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
func play(ctx context.Context, a *stage, o *Options) error {
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
func start(o *Options, dir string) (*agent.Agent, error) {
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
