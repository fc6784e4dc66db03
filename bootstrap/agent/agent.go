package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/render/addresses"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/bootstrap/page"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// ErrFatal means that actors failed more often than the root tolerates. Only a new process helps.
var ErrFatal = errors.New("the troupe cannot be kept running")

// Agent is one agent, from Start to Close.
type Agent struct {
	// startWith sets these before anything else. They never change, so any goroutine reads
	// them.
	cfg       *config.Agent
	log       *slog.Logger
	replant   chan struct{} // closed when CNAT is chosen for IPv4
	backend   backend
	readiness *health.Readiness
	metrics   *metrics.Metrics
	pending   *status.PendingSince
	keepsUp   *healthcheck.NodeHealth
	refusals  *refusals

	// The steps of Start set these. A step that starts a goroutine or a server comes after the
	// steps that set the fields which that goroutine reads.
	http        *httpServers
	etcd        connect       // nil without etcd
	nodes       *nodeSync     // nil without a node store
	cni         *simulatedCNI // nil with a real VPP
	vpp         link.Caller
	made        func(owned.Object) bool // whether the agent has made an object of VPP
	events      events.Recorder
	health      *healthcheck.Servers
	outside     *outsideSources // nil without NAT44
	stage       *stage          // nil without --enable-chaos
	system      *runtime.System
	hostRoutes  hostRoutes
	podNetworks podNetworks
	nodePort    *healthcheck.NodeServer // nil = there is no server for the health of the node
	scraped     *healthcheck.NodeServer // nil = only http serves metrics

	// Any goroutine may use these at any time.
	fatal   chan error                        // the error that ends Wait, at most one
	choice  atomic.Pointer[interfaces.Choice] // of the renderer of IPv4; nil = it is not made, or not needed
	node    atomic.Pointer[nodeSeen]
	updated lastSync
	history page.History
	counted counted // numbers of services at the last scrape
	// vppLock is the lock beside VPP's socket, dataLock the lock of the data directory; nil =
	// it is not held.
	vppLock, dataLock atomic.Pointer[lock]

	// Only the goroutine of Start and Close touches this.
	closers []closer // in the order of their start
}

// Start starts an agent. It does not wait for VPP, Kubernetes or etcd. On an error it stops
// everything that it has started.
func Start(cfg *config.Agent, log *slog.Logger) (*Agent, error) {
	return startWith(cfg, log, (*Agent).kubeSource)
}

// sourceMaker makes the source of an agent, and the client of the API server; nil = there is none.
type sourceMaker func(*Agent) (kube.Source, *apiserver.Client, error)

// startWith is Start with another source, for tests.
func startWith(cfg *config.Agent, log *slog.Logger, makeSource sourceMaker) (*Agent, error) {
	a := &Agent{cfg: cfg, log: log, readiness: &health.Readiness{}, fatal: make(chan error, 1), metrics: metrics.New(), pending: &status.PendingSince{}, replant: make(chan struct{})}
	a.backend = backend{func() *runtime.System { return a.system }, a}
	a.refusals = newRefusals(a.metrics, log.With("part", "http"))
	a.keepsUp = healthcheck.NewNodeHealth(healthcheck.NodeHealthConfig{
		State: a.nodeState, Answered: a.metrics.Probed, LostTimeout: cfg.API.HealthzLostAfter.Duration(),
	})
	startActors := func() error { return a.startActors(makeSource) }
	for _, step := range []func() error{a.lockDataDir, a.listen, startActors, a.serve, a.serveHealth, a.serveMetrics, a.serveTraces} {
		if err := step(); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// Wait returns nil when ctx ends, and an error when only a new process helps: ErrFatal, or the end
// of a component that cannot be restarted.
func (a *Agent) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.fatal:
		return err
	}
}

// fail ends Wait with an error; later errors are dropped. It does not block.
func (a *Agent) fail(err error) {
	select {
	case a.fatal <- err:
	default:
	}
}

// startActors makes the dependencies of the actors and spawns the root.
func (a *Agent) startActors(makeSource sourceMaker) error {
	source, client, err := makeSource(a)
	if err != nil {
		return err
	}
	serving, err := a.cfg.Services.Serving()
	if err != nil {
		return err
	}
	a.podNetworks.serving = serving
	if room := &serving.Limits.Node.Agent; *room == 0 {
		*room = memoryRoom(debug.SetMemoryLimit(-1))
	}
	rendering, err := a.cfg.NAT44.Renderer(a.cfg.NodeName)
	if err != nil {
		return err
	}
	if rendering.Ground.Reserved, err = a.cfg.Reserved(); err != nil {
		return err
	}
	snat, err := a.cfg.SNAT.Settings()
	if err != nil {
		return err
	}
	if a.etcd, err = a.connectEtcd(); err != nil {
		return err
	}
	if a.nodes, err = a.nodeSync(client); err != nil {
		return err
	}
	socket, stats, err := a.vppSocket()
	if err != nil {
		return err
	}
	// From here on the agent is visible outside of this process. All checks of the
	// configuration have passed.
	a.startOutside(client)
	hints := make(chan struct{}, 1)
	feed := kube.NewRelay(a.mirrored(source), sourceObserver{a}, time.Now)
	options := runtime.Options{
		Logger: a.log, OnFault: a.onFault,
		OnFatal: func(reason string) { a.fail(fmt.Errorf("%w: %s", ErrFatal, reason)) },
	}
	deps := &actors.Deps{
		NodeName: a.cfg.NodeName, Feed: feed, Serving: serving, Link: a.watchVPP(socket, a.prepareChaos(a.newLink(socket, hints), &options)),
		InterfaceEvents: hints, Listening: a.listening(), NAT44: rendering, HeapReserve: a.cfg.VPP.HeapReserve,
		SNAT: snat, Readiness: a.readiness, Observer: observer{a.metrics, &a.updated, &a.history}, Log: a.log, Events: a.events,
		HealthChecks: a.health, Pending: a.pending, Sessions: a.cfg.NAT44.Housekeeping(), SessionObserver: &sessionObserver{Metrics: a.metrics, agent: a},
		Timing: actors.Timing{
			Rediscover: a.cfg.Healing.RediscoverInterval.Duration(), DriftCheck: a.cfg.Healing.DriftCheckInterval.Duration(),
			DriftCheckLeast: a.cfg.Healing.DriftCheckLeast.Duration(),
			Backoff:         a.cfg.Healing.Backoff.Duration(), Patience: a.cfg.Healing.Patience.Duration(), Staleness: a.cfg.Kubernetes.Staleness(),
		},
	}
	readStatistics(stats, deps)
	deps.Addresses = a.announcing()
	a.vpp = deps.Link
	deps.Fatal = func(err error) { a.fail(fmt.Errorf("%w: %w", ErrFatal, err)) }
	if dir := a.cfg.DataDir; dir != "" {
		deps.Attachments = podFile(filepath.Join(dir, "pods.json"))
	}
	if a.cfg.Renderer != config.RendererCNAT {
		a.outside = a.externalSources()
	}
	if a.nodes != nil {
		deps.NodeSync = a.nodes
	}
	a.system = runtime.NewSystem(options)
	a.onClose("actors", a.system.Shutdown)
	a.startChaos()
	if err := a.keepHostRoutes(serving); err != nil {
		return err
	}
	a.removeTaint(client)
	a.own("Kubernetes source", a.runSource(feed)) // its observer sends to the system: not earlier
	if a.cfg.Renderer == config.RendererAuto {
		a.own("choice of the renderer", a.plantAgain(*deps))
	}
	return a.plant(*deps)
}

// newLink makes the connection to VPP. With --cleanup-on-exit it registers the clean-up, which
// needs the connection after the end of the actors.
func (a *Agent) newLink(socket string, hints chan<- struct{}) link.Runner {
	cfg := link.Config{Socket: socket, Window: a.cfg.VPP.RequestWindow, ReplyTimeout: a.cfg.VPP.ReplyTimeout.Duration()}
	cfg.OnEvent = func() { hint(hints) }
	if a.cfg.Addresses.Enabled {
		cfg.OnElection = func() { a.system.Send(a.system.PID(address.Renderer(addresses.Name)), &addresses.Elected{}) }
	}
	l := link.New(cfg, a.log.With("part", "link"))
	a.onClose("connection to VPP", closeWith(l))
	recorded := a.recorded(l)
	a.made = recorded.Record.Has
	if a.cfg.CleanupOnExit {
		a.onClose("rows and routes in VPP", func(ctx context.Context) error { return a.cleanUp(ctx, recorded) })
	}
	return recorded
}

// onFault sends a failure to the journal and to introspection, which shows services in quarantine.
// Metrics read the mailboxes instead. Supervisors call it; it does not block.
func (a *Agent) onFault(f *messages.Fault) {
	for _, path := range []string{address.Journal, address.Introspect} {
		if f.GetActor() != path {
			a.system.Send(a.system.PID(path), f)
		}
	}
}

// hint adds a hint unless one is pending, because a second one has no effect.
func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default:
	}
}

// HTTPAddress is the address of the read-only server, "host:port"; "" = there is none.
func (a *Agent) HTTPAddress() string { return a.http.address() }

// Backend gives the answers of the HTTP server without HTTP.
func (a *Agent) Backend() api.Backend { return a.backend }

// parts returns the parts of readiness that no actor reports.
func (a *Agent) parts() []api.Part {
	return slices.Concat(a.hostRoutes.parts(), a.podNetworks.parts(), a.healthCheckParts(), a.choiceParts())
}

// Metrics answers scrapes.
func (a *Agent) Metrics() http.Handler { return http.HandlerFunc(a.scrape) }

// closeWith adapts an io.Closer. It ignores the deadline.
func closeWith(c io.Closer) func(context.Context) error {
	return func(context.Context) error { return c.Close() }
}

// stopTimeout bounds each step of the shutdown.
const stopTimeout = 5 * time.Second

// closer stops one component.
type closer struct {
	name string
	stop func(context.Context) error
}

// onClose registers a component with Close, which stops it before the components registered
// earlier.
func (a *Agent) onClose(name string, stop func(context.Context) error) {
	a.closers = append(a.closers, closer{name, stop})
}

// Close stops all components in reverse order. It works in every state and always returns, because
// every step has a deadline; a second call does nothing.
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

// startOutside starts the writer of Kubernetes Events, which go to the log without an API server,
// and the servers of health-check node ports. They are not actors, so that they keep their state
// when actors restart.
func (a *Agent) startOutside(client *apiserver.Client) {
	if client == nil {
		a.events = events.NewLog(a.log.With("part", "events"))
	} else {
		writer := events.New(client, events.Config{NodeName: a.cfg.NodeName}, a.log.With("part", "events"))
		a.own("events", writer.Run)
		a.events = writer
	}
	a.events.Record(events.Started(a.cfg.NodeName))
	a.health = healthcheck.New(healthcheck.Config{
		Healthy: a.keepsUp.Healthy, Log: a.log.With("part", "healthcheck"), OnLimit: a.refusals.tooManyConnections(listenerHealthPort),
		OnProblem: func(p healthcheck.Problem) {
			if p.Err != nil || !p.Withdrawn {
				a.events.Record(events.HealthCheck(events.ServiceObject(p.Service, p.UID), a.cfg.NodeName, p.Port, p.Err))
			}
		},
	})
	a.own("health-check servers", a.health.Run)
}

// own runs a component in a goroutine; Close ends it and waits for it.
func (a *Agent) own(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	a.onClose(name, func(deadline context.Context) error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-deadline.Done():
			return fmt.Errorf("still running: %w", deadline.Err())
		}
	})
}
