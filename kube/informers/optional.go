package informers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// missingRest is how long an optional resource is not asked for again that the API server does not have or does not let the agent see.
const missingRest = 10 * time.Minute

// optional is a resource without which the agent works: of an API server that is too old for it (404), or without the right to see it (403).
type optional struct {
	log     *slog.Logger
	missing chan struct{} // closed at the first such answer
	once    sync.Once
	until   time.Time // no request before; only the goroutine of the reflector
}

// newOptional returns a resource that has not been asked for.
func newOptional(log *slog.Logger) *optional {
	return &optional{log: log, missing: make(chan struct{})}
}

// ask makes a request, after the rest that followed the last refusal. A nil optional never rests.
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
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		o.until = time.Now().Add(missingRest)
		o.once.Do(func() {
			o.log.Info("resource not used", "err", err)
			close(o.missing)
		})
	}
	return err
}

// settled returns a channel that is closed when the resource is listed, or is known to be missing; ctx ends its goroutine, which group waits for.
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
