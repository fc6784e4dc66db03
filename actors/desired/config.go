package desired

import (
	"context"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// NodeSync is the part of package cluster that the nodes actor needs; *cluster.Syncer satisfies it.
type NodeSync interface {
	// Run works until ctx ends; out gets a complete state each time something changed, from one
	// goroutine.
	Run(ctx context.Context, out func(*messages.ClusterState)) error
	// SetNodes passes on the nodes in Kubernetes. It never blocks; the latest value wins.
	SetNodes(*messages.NodeInput)
	// Publish passes on the VPP addresses ("ip/len") of this node. It never blocks; the latest
	// value wins.
	Publish(addresses []string)
}

// Config is the configuration of the actors of the package. It is read-only and shared by all of
// them.
type Config struct {
	// NodeName is this node's name in Kubernetes.
	NodeName string
	// Feed delivers the state of Kubernetes.
	Feed kube.Feed
	// Serving are the settings of the service semantics.
	Serving service.Config
	// Renderers are the names of all renderers; a service is in sync when it is in each of
	// them.
	Renderers []string
	// Called are the paths of the actors that take part in a roll call, besides renderers and
	// services.
	Called []string
	// NodeSync is nil where a node stands alone. A restarted nodes actor runs it again, when
	// the run before has returned.
	NodeSync NodeSync
	// NodeSyncRuns lets one run of NodeSync in at a time.
	NodeSyncRuns *runtime.Exclusive
	// Observer counts.
	Observer report.Observer
	// Retry is the first delay before something that was not acknowledged is sent again, on a
	// node without services.
	Retry time.Duration
	// Staleness is the age of the state, while the source does not see changes, above which the
	// node is not ready; negative = no limit.
	Staleness time.Duration
	// RollCall is the interval of the registry's roll call on a node with few services.
	RollCall time.Duration
}

// backoff is the delay of unacknowledged messages: it grows to 32 times the first delay. The first
// one grows with the number of actors, because all of them share the cores of the node: at the
// start, a message to one of 50,000 is handled after seconds. It is not lost, and another copy of
// it would only delay the others.
func (g *Config) backoff(actors int) runtime.Backoff {
	const growth, jitter, turn = 32, 0.3, 500 * time.Microsecond
	return runtime.Backoff{Min: g.Retry + time.Duration(actors)*turn, Max: growth * g.Retry, Jitter: jitter}
}

// rollCall is the interval of the roll call. It grows with the number of actors from 1,000 on, so
// that the roll call repeats at most 50 services a second. It need not be fast, because no message
// is lost within a process without the failure of an actor.
func (g *Config) rollCall(actors int) time.Duration {
	const few, each = 1000, 20 * time.Millisecond
	return g.RollCall + time.Duration(max(actors-few, 0))*each
}
