package connector

import (
	"context"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Source is a catalog outside of Kubernetes.
type Source interface {
	// Run publishes what the source knows until ctx ends, and returns nil then; an error is one
	// that no retry helps. It publishes after each change, and without one at least every minute,
	// since one that is repeated confirms the one before. What it could not read makes a snapshot
	// incomplete and is a problem in it. publish is called by one goroutine at a time, may be
	// called until Run returns, and does not block long.
	Run(ctx context.Context, publish func(catalog.Snapshot)) error
}
