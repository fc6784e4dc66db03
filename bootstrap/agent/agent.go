package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// stopTimeout bounds each step of the shutdown.
const stopTimeout = 5 * time.Second

// ErrFatal says that the actors failed more often than the root tolerates; the process should end and be started again.
var ErrFatal = errors.New("the troupe cannot be kept running")

// Agent is one agent, from Start to Close.
type Agent struct {
	cfg       *config.Agent
	log       *slog.Logger
	system    *runtime.System
	readiness *actors.Readiness
	link      *link.Link
	metrics   *metrics.Metrics
	started   time.Time
	fatal     chan string
	closers   []closer       // in the order of their start
	leaving   atomic.Bool    // Kubernetes is about to remove this node
	simulated *simulator.VPP // nil with a real VPP
	cni       *simulatedCNI  // nil with a real VPP
	httpAddr  string         // where the read-only server really listens
}

// closer is one thing to be stopped.
type closer struct {
	name string
	stop func(context.Context) error
}

// Start brings up an agent. On an error everything that was started is stopped again.
func Start(ctx context.Context, cfg *config.Agent, log *slog.Logger) (*Agent, error) {
	a := &Agent{
		cfg: cfg, log: log, readiness: &actors.Readiness{}, started: time.Now(), fatal: make(chan string, 1), metrics: metrics.New(),
	}
	for _, step := range []func(context.Context) error{a.startActors, a.startServers} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// Wait returns when ctx ends (nil) or the troupe has given up (ErrFatal).
func (a *Agent) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case reason := <-a.fatal:
		return fmt.Errorf("%w: %s", ErrFatal, reason)
	}
}

// Close stops everything in reverse order. It works in every state and always ends.
func (a *Agent) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		if err := a.closers[i].stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", a.closers[i].name, err))
		}
		cancel()
	}
	a.closers = nil
	return errors.Join(errs...)
}

func (a *Agent) onClose(name string, stop func(context.Context) error) {
	a.closers = append(a.closers, closer{name, stop})
}

// closeWith adapts an io.Closer, which knows no deadline.
func closeWith(c io.Closer) func(context.Context) error {
	return func(context.Context) error { return c.Close() }
}

// startActors builds the dependencies of the troupe and spawns it.
func (a *Agent) startActors(ctx context.Context) error {
	source, err := a.kubeSource()
	if err != nil {
		return err
	}
	sync, err := a.nodeSync(ctx)
	if err != nil {
		return err
	}
	socket, err := a.vppSocket()
	if err != nil {
		return err
	}
	source = &overheard{source, a.overhear}
	serving, err := servingConfig(a.cfg)
	if err != nil {
		return err
	}
	hints := make(chan struct{}, 1)
	linkConfig := link.Config{Socket: socket, Window: a.cfg.VPP.RequestWindow, ReplyTimeout: a.cfg.VPP.ReplyTimeout.Duration()}
	if a.cfg.CleanupOnExit {
		quiet := linkConfig
		a.onClose("rows in VPP", func(ctx context.Context) error { return a.cleanUp(ctx, quiet) })
	}
	linkConfig.OnEvent = func() { hint(hints) }
	a.link = link.New(linkConfig, a.log.With("part", "link"))

	deps := &actors.Deps{
		NodeName: a.cfg.NodeName, Source: source, Serving: serving, Link: a.link, InterfaceEvents: hints, NAT44: nat44Config(a.cfg),
		NodeSync: sync, Readiness: a.readiness, Observer: a.metrics, Log: a.log,
		Timing: actors.Timing{
			Rediscover: a.cfg.Healing.RediscoverInterval.Duration(), Audit: a.cfg.Healing.DriftCheckInterval.Duration(),
			Backoff: a.cfg.Healing.Backoff.Duration(),
		},
	}
	a.system = runtime.NewSystem(runtime.Options{
		Logger: a.log, OnFault: a.onFault, OnFatal: func(reason string) {
			select {
			case a.fatal <- reason:
			default:
			}
		},
	})
	a.onClose("actors", a.system.Shutdown)
	_, err = a.system.SpawnRoot(actors.RootName, actors.Tree(deps))
	return err
}

// overhear keeps what the bootstrap itself needs of the nodes and pods.
func (a *Agent) overhear(in *messages.NodeInput) {
	a.leaving.Store(in.GetSelf().GetLeaving())
	if a.cni != nil {
		a.cni.changed(in)
	}
}

// hint leaves one pending hint; more say nothing new.
func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default:
	}
}
