package cluster

import (
	"context"
	"errors"
	"time"
)

// Store is the place in which the nodes of a cluster share their records: etcd (NewEtcdStore) or
// Leases of the API server (NewLeaseStore). A Store serves one Syncer. It never retries; the Syncer
// does.
//
// A store has keys with values, and a revision that grows with every write. The interface has only
// the requests of a Syncer; the logic (which ID, when, for which node) is the same for all stores.
type Store interface {
	traits() traits
	// list returns everything under the layout at one revision.
	list(ctx context.Context) (listed, error)
	// watch passes all changes after a revision on, in order, until ctx or the watch ends. It
	// calls out without changes once it knows that the store serves the watch. It returns the
	// revision at which another watch may continue; 0 means that a list must come first. The
	// error is the reason of its end: errGap if changes may be missing, nil if the store ended
	// the watch normally.
	watch(ctx context.Context, after int64, out func([]change)) (int64, error)
	// transact carries out an operation: one of its branches, or nothing. It is called by one
	// goroutine at a time.
	transact(ctx context.Context, op *operation) wrote
}

// prober is a store whose watch does not notice in time that the store is away. For other stores an
// open watch means that the store answers.
type prober interface {
	// probe checks whether the store answers; errGap means that the store has lost data.
	probe(ctx context.Context) error
}

// traits are the differences between stores beyond their requests.
type traits struct {
	// name is the name of the store in reasons and in the log.
	name   string
	layout layout
	// relist is the interval of complete lists, in case a watch has missed changes.
	relist time.Duration
	// turn and maxTurn spread the claims of many nodes after a conflict: a node waits one turn
	// for each node before it, less than maxTurn in total.
	turn, maxTurn time.Duration
}

// wrote is the outcome of an operation.
type wrote struct {
	op *operation
	// ok is false if a guard did not hold, so that the operation was not carried out.
	ok bool
	// revision of the store after the operation; 0 = unknown.
	revision int64
	// err means that the outcome is unknown until the watch shows it.
	err error
}

var (
	// errGap means that the watch cannot continue from its revision, so that a new list is
	// needed.
	errGap = errors.New("watch has a gap")
	// errWatchEnded means that the API server ended a watch without an error.
	errWatchEnded = errors.New("the watch ended")
)
