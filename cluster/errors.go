package cluster

import "errors"

var (
	// ErrConfig marks an invalid configuration. The error names the field and the value.
	ErrConfig = errors.New("invalid cluster configuration")
	// ErrUndecodable marks a value in the store that does not have the type of its key. It
	// never counts as a deletion: the last good value of the key stays valid.
	ErrUndecodable = errors.New("undecodable record")
	// ErrTooLarge marks a value above the size limit of its type.
	ErrTooLarge = errors.New("record too large")
	// ErrForeign marks a Lease that has the name of a node and does not belong to the node
	// store. The store never changes such a Lease; the error tells the operator what to do.
	ErrForeign = errors.New("foreign lease")
	// ErrRunning is returned by a second call of Syncer.Run, which may be called only once.
	ErrRunning = errors.New("syncer has been run before")
)
