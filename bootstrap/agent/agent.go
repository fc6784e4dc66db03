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
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/agent/backend"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/bootstrap/outside"
	"github.com/troupe-vpp/troupe/bootstrap/page"
	"github.com/troupe-vpp/troupe/bootstrap/podfile"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/kube/relay"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// ErrFatal says that the actors failed more often than the root tolerates; the process should end
// and be started again.
var ErrFatal = errors.New("the troupe cannot be kept running")

// Agent is one agent, from Start to Close.
type Agent struct {
	cfg       *config.Agent
	log       *slog.Logger
	system    *runtime.System
	vpp       link.Caller
	readiness *health.Readiness
	metrics   *metrics.Metrics
	fatal     chan error
	closers   []closer // in the order of their start
	node      atomic.Pointer[nodeSeen]
	pending   *status.PendingSince
	updated   lastSync
	history   page.History
	keepsUp   *healthcheck.NodeHealth
	nodePort  *healthcheck.NodeServer // nil = the health of the node is not served
	scraped   *healthcheck.NodeServer // nil = metrics are served by http only
	cni       *simulatedCNI           // nil with a real VPP
	http      *httpServers
	counted   counted // what the last scrape knew of the services
	events    events.Recorder
	health    *healthcheck.Servers
	etcd      connect   // nil where there is none
	nodes     *nodeSync // nil where the node stands alone
	outside   *outside.Sources
	stage     *stage // nil without --enable-chaos
	refusals  *refusals
	renderers []string
	backend   backend.Backend

	hostRoutes hostRoutes

	podNetworks podNetworks

	// vppLock is held from the first connection to VPP on; nil before, or where none can be had.
	vppLock atomic.Pointer[lock]
	// dataLock is the lock of the data directory; nil where there is none.
	dataLock atomic.Pointer[lock]
}

// Start brings up an agent. It returns as soon as everything is under way: it waits neither for VPP
// nor for Kubernetes nor for etcd. On an error everything that was started is stopped again.
func Start(cfg *config.Agent, log *slog.Logger) (*Agent, error) {
	return startWith(cfg, log, (*Agent).kubeSource)
}

// sourceMaker makes the source of an agent, with the client of the API server where there is one.
type sourceMaker func(*Agent) (kube.Source, *apiserver.Client, error)

// startWith is Start with a choice of the source.
func startWith(cfg *config.Agent, log *slog.Logger, makeSource sourceMaker) (*Agent, error) {
	a := &Agent{cfg: cfg, log: log, readiness: &health.Readiness{}, fatal: make(chan error, 1), metrics: metrics.New(), pending: &status.PendingSince{}}
	a.renderers = (&actors.Deps{CNAT: cfg.CNAT(cfg.NodeName, nil)}).Renderers()
	a.backend = a.newBackend()
	a.refusals = newRefusals(a.metrics, log.With("part", "http"))
	a.keepsUp = healthcheck.NewNodeHealth(healthcheck.NodeHealthConfig{State: a.nodeState, Answered: a.metrics.Probed})
	startActors := func() error { return a.startActors(makeSource) }
	for _, step := range []func() error{a.lockDataDir, a.listen, startActors, a.serve, a.serveHealth, a.serveMetrics, a.serveTraces} {
		if err := step(); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// Wait returns when ctx ends (nil), when the troupe has given up (ErrFatal), or when something died
// that only a new process brings back.
func (a *Agent) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.fatal:
		return err
	}
}

// fail ends Wait with an error; the first one counts. It never blocks.
func (a *Agent) fail(err error) {
	select {
	case a.fatal <- err:
	default:
	}
}

// startActors builds the dependencies of the troupe and spawns it.
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
	// the first thing that others see of this agent: now nothing can go wrong at once any more
	a.startOutside(client)
	hints := make(chan struct{}, 1)
	feed := relay.New(a.mirrored(source), sourceObserver{a}, time.Now)
	options := runtime.Options{
		Logger: a.log, OnFault: a.onFault,
		OnFatal: func(reason string) { a.fail(fmt.Errorf("%w: %s", ErrFatal, reason)) },
	}
	deps := &actors.Deps{
		NodeName: a.cfg.NodeName, Feed: feed, Serving: serving, Link: a.watchVPP(socket, a.prepareChaos(a.newLink(socket, hints), &options)),
		InterfaceEvents: hints, Listening: a.listening(), NAT44: rendering, HeapReserve: a.cfg.VPP.HeapReserve, Heap: heapStats(stats),
		CNAT: a.cfg.CNAT(a.cfg.NodeName, rendering.Ground.Reserved), SNAT: snat, Readiness: a.readiness, Observer: observer{a.metrics, &a.updated, &a.history}, Log: a.log, Events: a.events,
		HealthChecks: a.health, Pending: a.pending, Sessions: a.cfg.NAT44.Housekeeping(), SessionStats: sessionStats(stats), SessionObserver: a.metrics,
		Timing: actors.Timing{
			Rediscover: a.cfg.Healing.RediscoverInterval.Duration(), DriftCheck: a.cfg.Healing.DriftCheckInterval.Duration(),
			DriftCheckLeast: a.cfg.Healing.DriftCheckLeast.Duration(), RollCall: a.cfg.Healing.RollCallInterval.Duration(),
			Backoff: a.cfg.Healing.Backoff.Duration(), Patience: a.cfg.Healing.Patience.Duration(), Staleness: a.cfg.Kubernetes.Staleness(),
		},
	}
	a.vpp = deps.Link
	deps.Fatal = func(err error) { a.fail(fmt.Errorf("%w: %w", ErrFatal, err)) }
	if dir := a.cfg.DataDir; dir != "" {
		deps.Attachments = podfile.File(filepath.Join(dir, "pods.json"))
	}
	if a.cfg.Renderer != config.RendererCNAT {
		a.outside = a.externalSources()
		deps.External = a.outside
	}
	if a.nodes != nil {
		deps.NodeSync = a.nodes
	}
	a.system = runtime.NewSystem(options)
	a.onClose("actors", a.system.Shutdown)
	a.startChaos()
	if err := a.keepHostRoutes(serving.ServiceCIDRs); err != nil {
		return err
	}
	a.removeTaint(client)
	a.own("Kubernetes source", a.runSource(feed)) // its observer sends to the system: not earlier
	_, err = a.system.SpawnRoot(address.RootName, actors.Tree(deps))
	return err
}

// newLink makes the connection to VPP, and the clean-up behind it where it is asked for.
func (a *Agent) newLink(socket string, hints chan<- struct{}) *link.Link {
	cfg := link.Config{Socket: socket, Window: a.cfg.VPP.RequestWindow, ReplyTimeout: a.cfg.VPP.ReplyTimeout.Duration()}
	cfg.OnEvent = func() { hint(hints) }
	l := link.New(cfg, a.log.With("part", "link"))
	a.onClose("connection to VPP", closeWith(l))
	if a.cfg.CleanupOnExit {
		a.onClose("rows and routes in VPP", func(ctx context.Context) error { return a.cleanUp(ctx, l) })
	}
	return l
}

// onFault passes a failure to the journal, and to introspection, which tells the users of a service
// that was put aside; metrics read the mailboxes. It is called from supervisors and does not block.
func (a *Agent) onFault(f *messages.Fault) {
	for _, path := range []string{address.Journal, address.Introspect} {
		if f.GetActor() != path {
			a.system.Send(a.system.PID(path), f)
		}
	}
}

// hint leaves one pending hint; more say nothing new.
func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default:
	}
}

// HTTPAddress is where the read-only server listens, "host:port"; "" = nowhere.
func (a *Agent) HTTPAddress() string { return a.http.address() }

// Backend answers what the HTTP server answers, without HTTP.
func (a *Agent) Backend() api.Backend { return a.backend }

// newBackend makes what answers the HTTP servers. They listen before the actors exist.
func (a *Agent) newBackend() backend.Backend {
	return backend.New(backend.Agent{
		Config: a.cfg, Log: a.log, System: func() *runtime.System { return a.system }, Readiness: a.readiness, Metrics: a.metrics, Renderers: a.renderers,
		VPP:      func() link.Caller { return a.vpp },
		Eligible: func() bool { return a.node.Load().eligible() },
		Parts:    func() []api.Part { return append(a.hostRoutes.parts(), a.podNetworks.parts()...) },
		External: func() bool { return a.outside != nil },
		Chaos:    func() *live.Live { return a.stage.live() },
		Changes:  func() { a.stage.countChanges(1) },
	})
}

// Metrics answers a scrape.
func (a *Agent) Metrics() http.Handler { return http.HandlerFunc(a.scrape) }

// closeWith adapts an io.Closer, which knows no deadline.
func closeWith(c io.Closer) func(context.Context) error {
	return func(context.Context) error { return c.Close() }
}
