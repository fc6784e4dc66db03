package connector

import (
	"context"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Source is a catalog outside of Kubernetes.
type Source interface {
	// Run publishes snapshots of the source until ctx ends, and returns nil then. An error means
	// that no retry can help. Run publishes after each change, and at least every minute, because a
	// repeated snapshot confirms the one before. An unreadable part makes a snapshot incomplete and
	// is a problem in it. One goroutine at a time calls publish, until Run returns; publish does
	// not block long.
	Run(ctx context.Context, publish func(catalog.Snapshot)) error
}
