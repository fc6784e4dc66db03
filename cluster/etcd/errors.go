package etcd

import "errors"

var (
	// ErrConfig marks an error of the configuration.
	ErrConfig = errors.New("invalid configuration of etcd")
	// ErrLocked is returned when another process holds the data directory of an embedded etcd.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrDamaged is returned when the data directory of an embedded etcd fails the check before the
	// start.
	ErrDamaged = errors.New("data directory is damaged")
	// ErrCloseTimeout is returned if an embedded etcd did not stop in time; it continues to stop in
	// the background.
	ErrCloseTimeout = errors.New("embedded etcd did not stop in time")
)
