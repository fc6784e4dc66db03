package cluster

import (
	"context"
	"errors"
	"time"
)

// Store is where the nodes of a cluster share their records: etcd (NewEtcdStore) or Leases of the
// API server (NewLeaseStore). A Store serves one Syncer. It never retries; the Syncer does.
//
// A store has keys with values, and a revision that grows with every write. What a Syncer needs of
// it is below; everything else (which ID, when, whose) is the same for all stores.
type Store interface {
	traits() traits
	// list returns everything under the layout at one revision.
	list(ctx context.Context) (listed, error)
	// watch passes on all changes after a revision, in order, until ctx ends or the watch does. It
	// calls out with nothing once the store serves the watch and can tell. It returns the revision
	// from which another watch may continue, 0 if a list must come first, and the reason of its
	// end: errGap if changes may be missing, nil if the store ended it in the normal course.
	watch(ctx context.Context, after int64, out func([]change)) (int64, error)
	// transact carries out an operation: one of its branches, or nothing. It is called by one
	// goroutine at a time.
	transact(ctx context.Context, op *operation) wrote
}

// prober is a store whose watch does not notice in time that the store is away. Without it, a watch
// that is open means that the store answers.
type prober interface {
	// probe checks whether the store answers; errGap means that it has lost what it had.
	probe(ctx context.Context) error
}

// traits are the differences between stores beyond their requests.
type traits struct {
	// name is the store in reasons and in the log.
	name   string
	layout layout
	// relist is the default of Config.RelistInterval.
	relist time.Duration
	// turn and maxTurn spread the nodes of a crowd after a conflict: turn for each node that goes
	// before this one, below maxTurn.
	turn, maxTurn time.Duration
}

// wrote is the outcome of an operation.
type wrote struct {
	op *operation
	// ok is false if a guard did not hold, so that the operation was not carried out.
	ok bool
	// revision of the store after it; 0 = the store does not say.
	revision int64
	// err means that the outcome is unknown until the watch shows it.
	err error
}

// errGap means that the watch cannot continue from its revision, so that a new list is needed.
var errGap = errors.New("watch has a gap")
