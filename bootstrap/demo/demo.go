package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/deploy/demo"
	"github.com/troupe-vpp/troupe/messages"
)

// settleTimeout is how long the demo waits for everything to be in sync before it says that it is not.
const settleTimeout = 20 * time.Second

// ErrFailed says that something did not hold; the report says what.
var ErrFailed = errors.New("the demo did not hold what it promises")

// Options say how the demo is run.
type Options struct {
	// NodeName is the node to play; Cluster is the directory with its cluster, "" = the built-in one.
	NodeName, Cluster string
	// HTTPAddress is where the agent shows its state; an address in use makes it choose a free port.
	HTTPAddress string
	// Exit ends the demo when the proof is done instead of waiting for the context.
	Exit bool
	// JSON prints the report as JSON.
	JSON bool
	// Started is when the process started.
	Started time.Time
	// Out gets the report, Log the log of the agent.
	Out io.Writer
	Log *slog.Logger
}

// Run runs the demo. The error is ErrFailed when something did not hold.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "troupe-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.Cluster == "" {
		o.Cluster = filepath.Join(dir, "cluster")
		if err := unpack(o.Cluster); err != nil {
			return fmt.Errorf("unpack the cluster: %w", err)
		}
	}
	a, err := start(ctx, &o, dir)
	if err != nil {
		return err
	}
	report, err := prove(ctx, a, &o)
	if err == nil {
		err = print(report, &o)
	}
	if err == nil && !o.Exit {
		fmt.Fprintf(o.Out, "The agent runs; look at http://%s/api/v1/services or stop it with Ctrl-C.\n", a.HTTPAddress())
		err = a.Wait(ctx)
	}
	if err == nil && !report.OK {
		err = ErrFailed
	}
	return errors.Join(err, a.Close())
}

// unpack writes the built-in cluster to a directory, where the agent finds it as it would find a mounted one.
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

// start brings up the agent with everything inside.
func start(ctx context.Context, o *Options, dir string) (*agent.Agent, error) {
	cfg := config.Defaults()
	cfg.NodeName = o.NodeName
	cfg.Kubernetes.Source = "files:" + o.Cluster
	cfg.VPP.Mode = "simulated"
	cfg.Etcd.Mode, cfg.Etcd.DataDir = "embedded", filepath.Join(dir, "etcd")
	cfg.Services.ServiceCIDRs, cfg.Services.ClusterCIDRs = []string{"10.96.0.0/16"}, []string{"10.1.0.0/16"}
	cfg.API.HTTPAddress, cfg.API.ControlSocket = o.HTTPAddress, filepath.Join(dir, "control.sock")
	cfg.API.EnableChaos = true
	a, err := agent.Start(ctx, cfg, o.Log)
	if err == nil {
		return a, nil
	}
	cfg.API.HTTPAddress = "127.0.0.1:0" // the usual port is taken, for example by another demo
	return agent.Start(ctx, cfg, o.Log)
}

// prove waits until the agent is in sync and collects the evidence.
func prove(ctx context.Context, a *agent.Agent, o *Options) (*Report, error) {
	statuses, err := settle(ctx, a)
	if err != nil {
		return nil, err
	}
	report := &Report{InSyncAfter: since(o.Started), Services: len(statuses)}
	for _, s := range statuses {
		row := serviceRow(s)
		report.Table = append(report.Table, row)
		report.Rows += row.Rows
		if row.State != statePending && row.State != stateFailed {
			report.InSync++
		}
	}
	report.Probes = newProber(a, statuses).all()
	for _, fault := range []struct{ what, path string }{
		{"service actor shop/web killed", actors.PathService("shop/web")},
		{"renderer nat44 killed", actors.PathRenderer("nat44")},
		{"registry killed", actors.PathRegistry},
	} {
		drill, err := kill(ctx, a, fault.what, fault.path)
		if err != nil {
			return nil, err
		}
		report.Drills = append(report.Drills, drill)
	}
	report.judge()
	return report, nil
}

// settle waits until the agent says that VPP holds what it should and every service of it agrees.
func settle(ctx context.Context, a *agent.Agent) ([]*messages.ServiceStatus, error) {
	deadline := time.Now().Add(settleTimeout)
	for {
		statuses, err := a.Statuses(ctx)
		if err == nil && a.Backend().Readiness().Ready && inSync(statuses) {
			return statuses, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("not in sync after %s: %+v", settleTimeout, a.Backend().Readiness().Parts)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func inSync(statuses []*messages.ServiceStatus) bool {
	for _, s := range statuses {
		if serviceRow(s).State == statePending {
			return false
		}
	}
	return len(statuses) > 0
}

func print(report *Report, o *Options) error {
	if o.JSON {
		return report.writeJSON(o.Out)
	}
	return report.writeText(o.Out)
}
