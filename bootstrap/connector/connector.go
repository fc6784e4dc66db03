package connector

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/connector/store"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/kube/leader"
)

// Requests per second to the API server, and at once: 5,000 services are 10,000 writes, which must
// take less than a minute.
const (
	requests      = 300
	burstRequests = 600
)

// leaseName is the Lease of the connector that writes, in the sync namespace.
const leaseName = "troupe-connector"

// Connector is a running connector.
type Connector struct {
	config  *Config
	log     *slog.Logger
	board   *board
	system  *runtime.System
	server  *server.Server
	fatal   chan error
	cancel  context.CancelFunc
	running sync.WaitGroup
	started time.Time
	// missing asks whether the sync namespace exists; nil = nothing is written to an API
	// server.
	missing func(ctx context.Context) error
}

// Start starts a connector. With write false it never leads and only reports the writes that it
// would make.
func Start(cfg *Config, write bool, log *slog.Logger) (*Connector, error) {
	sources, err := cfg.sources(log)
	if err != nil {
		return nil, err
	}
	c := &Connector{config: cfg, log: log, board: &board{}, fatal: make(chan error, 1), started: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	d := &deps{
		sources: sources, limits: catalog.DefaultLimits(), deleteLimit: cfg.DeleteLimit, board: c.board,
		// the only connector
		lead: func(ctx context.Context, lead func(context.Context)) { lead(ctx) },
		options: render.Options{
			Namespace: cfg.Namespace, ClusterID: cfg.ClusterID, Prefix: cfg.ServicePrefix, Headless: cfg.Headless, Flomesh: cfg.Flomesh,
		},
	}
	if err := c.output(ctx, d); err != nil {
		cancel()
		return nil, err
	}
	if !write {
		d.events = nil
		d.lead = func(ctx context.Context, _ func(context.Context)) { <-ctx.Done() }
	}
	c.system = runtime.NewSystem(runtime.Options{Logger: log, OnFatal: func(reason string) { c.fail(errors.New(reason)) }})
	c.server = server.New(c.backend(), c.serverConfig(), log.With("part", "http"))
	if err := c.server.Listen(); err != nil {
		cancel()
		return nil, err
	}
	c.serveMetrics(ctx)
	_, err = c.system.SpawnRoot(rootPath, tree(d))
	c.running.Go(func() {
		if err := c.server.Serve(ctx); err != nil {
			c.fail(err)
		}
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// output makes the store of the objects.
func (c *Connector) output(ctx context.Context, d *deps) error {
	config := store.Config{
		Namespace: c.config.Namespace, Directory: c.config.Directory, Pool: c.config.ServiceCIDRs,
		Policy: catalog.Policy{ServiceRanges: c.config.ServiceCIDRs, Pods: c.config.PodCIDRs, AllowPods: c.config.AllowPods, Deny: c.config.Deny},
	}
	if c.config.Output == OutputDirect {
		d.store = func() store.Store { return store.NewFiles(config, c.log) }
		return nil
	}
	client, err := informers.NewClient(informers.ClientConfig{
		Kubeconfig: c.config.Kubeconfig, AllowClusterIP: true, UserAgent: "troupe-connector", QPS: requests, Burst: burstRequests,
	})
	if err != nil {
		return err
	}
	identity, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get host name: %w", err)
	}
	namespace := client.Namespace(c.config.Namespace)
	c.missing = namespace.Missing
	d.lead = leader.New(namespace.Leases, leaseName, identity+"_"+rand.Text()[:8], leader.Duration, c.log).Run
	d.store = func() store.Store { return store.NewAPI(client, config, c.log) }
	recorder := events.New(client, events.Config{NodeName: "connector"}, c.log)
	d.events = recorder
	c.running.Go(func() { _ = recorder.Run(ctx) })
	return nil
}

// backend answers the API.
func (c *Connector) backend() backend {
	return backend{Tree: func() *runtime.System { return c.system }, c: c}
}

// metrics answers scrapes.
func (c *Connector) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{c.board})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// serveMetrics starts the server of metrics and probes for the network. While its address is in
// use, the server reports it and retries.
func (c *Connector) serveMetrics(ctx context.Context) {
	if c.config.MetricsAddress == "" {
		return
	}
	only := server.ForNetwork(c.metrics(), func() bool { return c.backend().Readiness().Ready })
	listener := healthcheck.NewNodeServer(c.config.MetricsAddress, only, healthcheck.Config{Log: c.log.With("part", "metrics")})
	c.running.Go(func() { _ = listener.Run(ctx) })
}

// serverConfig is the configuration of the HTTP server.
func (c *Connector) serverConfig() server.Config {
	return server.Config{
		HTTPAddress: c.config.HTTPAddress, ControlSocket: c.config.ControlSocket, Metrics: c.metrics(),
		Reads:   map[string]func(*http.Request) (any, error){"connector": func(*http.Request) (any, error) { return c.State(), nil }},
		Changes: map[string]func(*http.Request) (any, error){"connector/sources/{source}/confirm": c.confirm},
	}
}

// fail ends the connector.
func (c *Connector) fail(err error) {
	select {
	case c.fatal <- err:
	default: // the first one counts
	}
}

// HTTPAddress is the address of the read-only server; "" = none.
func (c *Connector) HTTPAddress() string {
	if a := c.server.Addr(); a != nil {
		return a.String()
	}
	return ""
}

// Wait returns when ctx ends, or with the error for which the connector cannot go on.
func (c *Connector) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.fatal:
		return err
	}
}

// Settle waits until the last answers of all sources were compared with the objects. It reports
// whether that happened in time.
func (c *Connector) Settle(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !c.State().settled {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return true
}

// MissingNamespace returns an error if the sync namespace does not exist, which the lists of its
// objects do not say.
func (c *Connector) MissingNamespace(ctx context.Context) error {
	if c.missing == nil {
		return nil
	}
	if err := c.missing(ctx); err != nil {
		return fmt.Errorf("--sync-namespace %s: the namespace does not exist: %w", c.config.Namespace, err)
	}
	return nil
}

// Close ends everything. The written objects stay.
func (c *Connector) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := c.system.Shutdown(ctx)
	c.cancel()
	c.running.Wait()
	return err
}
