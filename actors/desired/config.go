package desired

import (
	"context"
	"time"

	"github.com/troupe-vpp/troupe/actors/gate"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// NodeSync is what the nodes actor needs of package cluster; *cluster.Syncer satisfies it.
type NodeSync interface {
	// Run works until ctx ends; out gets a complete state each time something changed, from one
	// goroutine.
	Run(ctx context.Context, out func(*messages.ClusterState)) error
	// SetNodes passes on what Kubernetes says about nodes. It never blocks; the latest value wins.
	SetNodes(*messages.NodeInput)
	// Publish passes on by which VPP addresses ("ip/len") this node wants to be known. It never
	// blocks; the latest value wins.
	Publish(addresses []string)
}

// Config is what the actors of the package are given. It is read-only and shared by all of them.
type Config struct {
	// NodeName is this node's name in Kubernetes.
	NodeName string
	// Feed delivers what Kubernetes says.
	Feed kube.Feed
	// Serving are the settings of the service semantics.
	Serving service.Config
	// Renderers are the names of all renderers; a service is in sync when it is in each of them.
	Renderers []string
	// Called are the paths of the actors that take part in a roll call, besides renderers and
	// services.
	Called []string
	// NodeSync is nil where a node stands alone. A restarted nodes actor runs it again, when the
	// run before has returned.
	NodeSync NodeSync
	// NodeGate lets one run of NodeSync in at a time.
	NodeGate *gate.Gate
	// Observer counts.
	Observer report.Observer
	// Retry is the first delay before something that was not acknowledged is sent again; it doubles
	// five times.
	Retry time.Duration
	// Staleness is how old the state may be while the source does not see changes, before the node
	// is not ready; negative = however old.
	Staleness time.Duration
	// RollCall is the interval of the registry's roll call.
	RollCall time.Duration
}

// backoff is that of messages that were not acknowledged: it grows to 32 times the first delay.
func (g *Config) backoff() runtime.Backoff {
	const growth, jitter = 32, 0.3
	return runtime.Backoff{Min: g.Retry, Max: growth * g.Retry, Jitter: jitter}
}
