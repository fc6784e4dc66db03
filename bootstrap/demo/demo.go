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
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// Errors of Run.
var (
	// ErrFailed says that something did not hold; the report says what.
	ErrFailed = errors.New("the demo did not hold what it promises")
	// ErrInterrupted says that the demo was ended before its proof was done.
	ErrInterrupted = errors.New("interrupted before the proof was done")
	// ErrCluster says that there is nothing to play: no such directory, or no such node in it.
	ErrCluster = errors.New("no such cluster")
)

// Options say how the demo is run.
type Options struct {
	// NodeName is the node to play; Cluster is the directory with its cluster, "" = the built-in one.
	NodeName, Cluster string
	// HTTPAddress is where the agent shows its state; an address in use makes it choose a free port.
	HTTPAddress string
	// Exit ends the demo when the proof is done instead of waiting for the context.
	Exit bool
	// JSON prints the report as JSON, and nothing else.
	JSON bool
	// Started is when the process started.
	Started time.Time
	// Out gets the report, Log the log of the agent.
	Out io.Writer
	Log *slog.Logger

	blind bool // the agent does not look for damage in VPP: a test wants to see that it is seen
}

// Run runs the demo until its proof is done (Options.Exit) or ctx ends. The error is nil only if everything held.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "troupe-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	services, err := o.cluster(dir)
	if err != nil {
		return err
	}
	a, err := start(&o, dir)
	if err != nil {
		return err
	}
	return errors.Join(play(ctx, &stage{Agent: a, services: services, quiet: quietFor}, &o), a.Close())
}

// play proves and shows on a running agent. An agent that dies ends the play.
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
	if err := report.write(o.Out, o.JSON); err != nil {
		return err
	}
	if !o.Exit {
		if !o.JSON {
			fmt.Fprintf(o.Out, "\nThe agent runs until Ctrl-C: look at http://%s/api/v1/services, or ask it with\n"+
				"  troupe get services --address %s\n", a.HTTPAddress(), a.HTTPAddress())
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

// start brings up the agent with everything inside.
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
		cfg.API.HTTPAddress = "127.0.0.1:0" // the usual port is taken, for example by another demo
		return agent.Start(cfg, o.Log)
	}
	return a, err
}
