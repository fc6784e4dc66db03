package informers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The API server may lack an optional resource, or refuse the agent access to it. The agent asks
// again after a rest that doubles from leastRest to mostRest. A refusal is logged when the rest is
// longer than loggedRest, because a starting API server refuses many requests for a moment.
const (
	leastRest  = time.Second
	loggedRest = 10 * time.Second
	mostRest   = 10 * time.Minute
)

// optional is the state of a resource that the agent can do without: the API server is too old for
// it (404), or the agent may not read it (403).
type optional struct {
	log     *slog.Logger
	missing chan struct{} // closed at the first such answer
	once    sync.Once
	// Only the goroutine of the reflector uses these: no request is sent before until; rest is
	// the length of the last rest, 0 = a watch was opened since the last refusal.
	until time.Time
	rest  time.Duration
}

// newOptional returns a resource without requests so far.
func newOptional(log *slog.Logger) *optional {
	return &optional{log: log, missing: make(chan struct{})}
}

// ask sends a request, after the rest that follows the last refusal. A nil optional never rests.
func (o *optional) ask(ctx context.Context, request func() error) error {
	if o == nil {
		return request()
	}
	pause := time.NewTimer(time.Until(o.until))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := request()
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	before := o.rest
	o.rest = min(max(2*before, leastRest), mostRest)
	o.until = time.Now().Add(o.rest)
	o.once.Do(func() { close(o.missing) })
	if before <= loggedRest && o.rest > loggedRest {
		o.log.Info("resource not used", "err", err)
	}
	return err
}

// watched ends the rests, because an opened watch shows that the resource exists and can be read. A
// list alone does not show that.
func (o *optional) watched() {
	if o != nil {
		o.rest = 0
	}
}

// settled returns a channel that is closed when the resource is listed, or is known to be missing.
// ctx ends its goroutine; group waits for the goroutine.
func (o *optional) settled(ctx context.Context, group *sync.WaitGroup, listed <-chan struct{}) <-chan struct{} {
	if o == nil {
		return listed
	}
	out := make(chan struct{})
	group.Go(func() {
		select {
		case <-listed:
		case <-o.missing:
		case <-ctx.Done():
			return
		}
		close(out)
	})
	return out
}
