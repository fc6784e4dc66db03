package mirror

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

// Claims saves the node ID that the node store confirmed last. The methods Last and Keep of a nil
// value do nothing. All methods are safe for concurrent use.
type Claims struct {
	store *Store
	log   *slog.Logger
	wake  chan struct{} // holds a token while a claim is to be saved

	mu     sync.Mutex // never held across I/O
	latest *messages.MirroredClaim
	saved  bool // latest is on the disk
}

// claimRetry is the time between a failed save and the next one.
const claimRetry = 10 * time.Second

// NewClaims reads the claim of an earlier run. A claim that cannot be read is logged.
func NewClaims(store *Store, log *slog.Logger) *Claims {
	c := &Claims{store: store, log: log, wake: make(chan struct{}, 1)}
	claim, err := store.Claim()
	switch {
	case err == nil:
		c.latest, c.saved = claim, true
	case !errors.Is(err, ErrNone):
		log.Error("start without the node ID of the local mirror", "err", err)
	}
	return c
}

// Last returns the ID and the UID of this node in an earlier run. IDs under another prefix, or of a
// node of another name, do not count.
func (c *Claims) Last(node, prefix string) (id uint32, uid string) {
	if c == nil {
		return 0, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest.GetNode() != node || c.latest.GetPrefix() != prefix {
		return 0, ""
	}
	c.log.Info("node ID from the local mirror, unconfirmed until the node store answers", "node", node, "id", c.latest.GetId())
	return c.latest.GetId(), c.latest.GetUid()
}

// Keep schedules the save of a claim that the node store has confirmed. It does not block.
func (c *Claims) Keep(claim *messages.MirroredClaim) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	claim.Saved = c.latest.GetSaved()
	if proto.Equal(c.latest, claim) {
		return
	}
	claim.Saved = time.Now().UnixNano()
	c.latest, c.saved = claim, false
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run saves until ctx ends, and then once more. It returns the error of the last save.
func (c *Claims) Run(ctx context.Context) error {
	again := time.NewTimer(claimRetry)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.save()
		case <-c.wake:
		case <-again.C:
		}
		if err := c.save(); err != nil {
			c.log.Warn("node ID not saved", "err", err)
		}
		again.Reset(claimRetry)
	}
}

// save writes the latest claim if it is not on the disk.
func (c *Claims) save() error {
	c.mu.Lock()
	claim, saved := c.latest, c.saved
	c.mu.Unlock()
	if saved || claim == nil {
		return nil
	}
	if err := c.store.SaveClaim(claim); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = c.latest == claim
	return nil
}
