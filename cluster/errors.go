package cluster

import "errors"

var (
	// ErrConfig marks a configuration that cannot work; it is wrapped with the field and the value.
	ErrConfig = errors.New("invalid cluster configuration")
	// ErrUndecodable marks a value found in etcd that is not what its key promises. Such a value never counts as a deletion: what was
	// last understood under that key stays valid.
	ErrUndecodable = errors.New("undecodable record")
	// ErrTooLarge marks a value beyond the size that its kind can have.
	ErrTooLarge = errors.New("record too large")
	// ErrRunning is returned by a second call of Syncer.Run: a Syncer has one life.
	ErrRunning = errors.New("syncer has been run before")
	// ErrLocked is returned when another process holds the data directory of an embedded etcd.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrDamaged is returned when the data directory of an embedded etcd does not pass the check before the start.
	ErrDamaged = errors.New("data directory is damaged")
	// ErrCloseTimeout is returned when an embedded etcd did not stop in time; it goes on stopping in the background.
	ErrCloseTimeout = errors.New("embedded etcd did not stop in time")
)
