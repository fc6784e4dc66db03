// Package addresses runs the allocator of addresses, `troupe addresses`: Services of type
// LoadBalancer get addresses from AddressPools. Package kube/allocator does the work; this one
// makes its client, competes for the Lease, and serves metrics and probes.
package addresses

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/kube/allocator"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/kube/leader"
)

// Requests per second to the API server, and at once: 1,000 Services get their addresses in less
// than 10 s.
const (
	requests      = 300
	burstRequests = 600
)

// leaseName is the Lease of the allocator that writes, in its namespace.
const leaseName = "troupe-addresses"

// Config is the configuration from the command line.
type Config struct {
	// Namespace of the Lease.
	Namespace string
	// Kubeconfig is a file; "" = the service account of the pod.
	Kubeconfig string
	// DefaultClass gives addresses also to Services without a class.
	DefaultClass bool
	// ServiceCIDRs and PodCIDRs are networks of the cluster, beside those that ServiceCIDR and Node
	// objects have. Pools must not overlap them.
	ServiceCIDRs, PodCIDRs []netip.Prefix
	// LeaseDuration is how long other allocators wait for a leader that does not answer.
	LeaseDuration time.Duration
	// MetricsAddress is the address of /metrics, /readyz and /livez; "" = none.
	MetricsAddress string
}

// Check returns every error of the configuration, one for each flag.
func (c *Config) Check() error {
	var errs []error
	if c.Namespace == "" {
		errs = append(errs, errors.New("--namespace is required"))
	}
	if c.LeaseDuration < 3*time.Second || c.LeaseDuration%time.Second != 0 {
		errs = append(errs, fmt.Errorf("--lease-duration %s: expected whole seconds, at least 3s", c.LeaseDuration))
	}
	return errors.Join(errs...)
}

// Run runs an allocator until ctx ends.
func Run(ctx context.Context, cfg *Config, log *slog.Logger) error {
	client, err := informers.NewClient(informers.ClientConfig{
		Kubeconfig: cfg.Kubeconfig, AllowClusterIP: true, UserAgent: "troupe-addresses", QPS: requests, Burst: burstRequests,
	})
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get host name: %w", err)
	}
	// an event for each Service that gets an address, at a rate that an API server bears
	recorder := events.New(client, events.Config{NodeName: "addresses", Interval: 50 * time.Millisecond, Burst: 100, MostEvents: 10_000}, log)
	a := allocator.New(client, allocator.Config{DefaultClass: cfg.DefaultClass, ServiceCIDRs: cfg.ServiceCIDRs, PodCIDRs: cfg.PodCIDRs}, recorder, log)
	elector := leader.New(client.Namespace(cfg.Namespace).Leases, leaseName, host+"_"+rand.Text()[:8], cfg.LeaseDuration, log)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = recorder.Run(ctx) })
	if cfg.MetricsAddress != "" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics{a.Status})
		ready := func() bool {
			s := a.Status()
			return elector.Trouble() == "" && (!s.Leading || s.Listed && s.Trouble == "")
		}
		handler := server.ForNetwork(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ready)
		listener := healthcheck.NewNodeServer(cfg.MetricsAddress, handler, healthcheck.Config{Log: log.With("part", "metrics")})
		running.Go(func() { _ = listener.Run(ctx) })
	}
	elector.Run(ctx, a.Lead)
	return nil
}
