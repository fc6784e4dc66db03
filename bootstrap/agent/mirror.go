package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/mirror"
	"github.com/troupe-vpp/troupe/messages"
)

// mirrored puts the local mirror in front of a source, if a directory is configured for it.
func (a *Agent) mirrored(source kube.Source) kube.Source {
	dir := a.cfg.MirrorDir()
	if dir == "" {
		return source
	}
	out := mirror.New(source, mirror.NewStore(dir, durable.Disk{}), mirror.Config{
		Node: a.cfg.NodeName, Origin: origin(a.cfg.Kubernetes), Grace: a.cfg.Mirror.Grace.Duration(),
		ConfirmEmpty: a.cfg.Mirror.ConfirmEmpty.Duration(), Observer: a.metrics,
	}, a.log.With("part", "mirror"))
	if s, ok := source.(*files.Source); ok {
		if earlier := out.Earlier(); earlier != nil {
			s.Remember(earlier)
		}
	}
	return out
}

// origin names the place that a source reads. The address of an API server is not part of it: it
// may change and still lead to the same cluster.
func origin(k config.Kubernetes) string {
	dir, ok := k.FilesDir()
	if !ok {
		return k.Source
	}
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return config.SourceFilesPrefix + dir
}

// claims saves the node ID that etcd confirmed last in the local mirror. The methods of a nil value
// do nothing.
type claims struct {
	store *mirror.Store
	log   *slog.Logger
	wake  chan struct{} // holds a token while a claim is to be saved

	mu     sync.Mutex // never held across I/O
	latest *messages.MirroredClaim
	saved  bool // latest is on the disk
}

// claimRetry is the time between a failed save and the next one.
const claimRetry = 10 * time.Second

// claims starts to save claims, if a directory is configured for the local mirror.
func (a *Agent) claims() *claims {
	dir := a.cfg.MirrorDir()
	if dir == "" {
		return nil
	}
	c := &claims{store: mirror.NewStore(dir, durable.Disk{}), log: a.log.With("part", "mirror"), wake: make(chan struct{}, 1)}
	c.load()
	a.own("local mirror of the node ID", c.work)
	return c
}

// load takes the claim of an earlier run.
func (c *claims) load() {
	claim, err := c.store.Claim()
	switch {
	case err == nil:
		c.latest, c.saved = claim, true
	case !errors.Is(err, mirror.ErrNone):
		c.log.Error("start without the node ID of the local mirror", "err", err)
	}
}

// last returns the ID and the UID of this node in an earlier run. IDs under another prefix, or of a
// node of another name, do not count.
func (c *claims) last(node, prefix string) (id uint32, uid string) {
	if c == nil || c.latest.GetNode() != node || c.latest.GetPrefix() != prefix {
		return 0, ""
	}
	c.log.Info("node ID from the local mirror, unconfirmed until the node store answers", "node", node, "id", c.latest.GetId())
	return c.latest.GetId(), c.latest.GetUid()
}

// keep schedules the save of a claim that etcd has confirmed. It does not block.
func (c *claims) keep(claim *messages.MirroredClaim) {
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

// work saves until ctx ends, and then once more.
func (c *claims) work(ctx context.Context) error {
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

// save saves the latest claim, unless it has been.
func (c *claims) save() error {
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
