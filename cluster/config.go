package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// maxNodeName is the longest name of a Kubernetes Node (RFC 1123 subdomain).
const maxNodeName = 253

// Config configures a Syncer. The zero value of a field means its default, except for NodeName.
type Config struct {
	// NodeName is the name of this node in Kubernetes. Required. Kubernetes must accept the name;
	// it has at most 253 bytes.
	NodeName string
	// GracePeriod is the time for which this observer must miss a node in Kubernetes without
	// interruption before it releases the node's ID. Every observer adds a random time of up to a
	// tenth, so that the observers do not collect all at once. Default 10 min.
	GracePeriod time.Duration
	// LastID is the ID that an earlier process of this node has held, from the local mirror; 0 =
	// unknown. A record in the store under this node's name takes precedence. Without such a record
	// (the store lost its data) the node claims LastID again. If another node holds LastID, the
	// claim is fenced.
	LastID uint32
	// LastUID is the UID that the Kubernetes Node had when LastID was stored; "" = unknown. If
	// Kubernetes reports another UID, the Node has been created again, and the Syncer ignores
	// LastID.
	LastUID string
	// RequestTimeout limits one list or transaction. Default 5 s.
	RequestTimeout time.Duration
	// ProbeInterval is the interval of requests that check whether etcd answers and still has the
	// revision of the watch. It bounds the time until the Syncer detects a lost connection, or the
	// loss of etcd's data. Other stores are not probed. Default 5 s.
	ProbeInterval time.Duration
	// BackoffMin and BackoffMax bound the random back-off before a transaction is retried. The n-th
	// delay is an eighth to all of min(BackoffMax, BackoffMin*2^n) after a conflict, and 16
	// times as long after an error. Defaults 10 ms and 500 ms.
	BackoffMin, BackoffMax time.Duration
	// Now is the clock of the grace period. Any goroutine of the Syncer may call it. Default
	// time.Now.
	Now func() time.Time
}

// withDefaults returns the configuration with a default in every zero field.
func (c Config) withDefaults() Config {
	c.GracePeriod = cmp.Or(c.GracePeriod, 10*time.Minute)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second)
	c.ProbeInterval = cmp.Or(c.ProbeInterval, 5*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, 10*time.Millisecond)
	c.BackoffMax = cmp.Or(c.BackoffMax, 500*time.Millisecond)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// validate reports the first invalid field of a configuration with defaults.
func (c Config) validate() error {
	switch {
	case !validNodeName(c.NodeName):
		return fmt.Errorf("%w: NodeName %q is not the name of a Kubernetes node", ErrConfig, c.NodeName)
	case c.GracePeriod < 0, c.RequestTimeout < 0, c.ProbeInterval < 0, c.BackoffMin < 0:
		return fmt.Errorf("%w: negative duration", ErrConfig)
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("%w: BackoffMax %s is less than BackoffMin %s", ErrConfig, c.BackoffMax, c.BackoffMin)
	}
	return nil
}

// validNodeName reports whether the name can be the last element of a key. It allows more than RFC
// 1123, because it only checks that the key of one node cannot be part of the key of another.
func validNodeName(name string) bool {
	if name == "" || len(name) > maxNodeName {
		return false
	}
	for _, r := range name {
		if r <= ' ' || r == '/' || r >= 0x7f {
			return false
		}
	}
	return true
}

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
