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
	// NodeSync is nil where a node stands alone. A restarted nodes actor runs it again, when
	// the run before has returned.
	NodeSync NodeSync
	// NodeSyncRuns lets one run of NodeSync in at a time.
	NodeSyncRuns *runtime.Exclusive
	// Observer counts.
	Observer report.Observer
	// Staleness is the age of the state, while the source does not see changes, above which the
	// node is not ready; negative = no limit.
	Staleness time.Duration
}
