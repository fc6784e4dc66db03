package informers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Pauses between two requests of an agent to an API server that does not answer: random, so that the agents of a cluster do not ask at the same moment.
const (
	leastPause = time.Second
	mostPause  = 3 * time.Second
)

// silent begins the reasons that are about all resources.
const silent = "the API server does not answer"

// gate lets requests through while the API server answers. While it does not, one of them is repeated until it gets an answer, and the others wait for
// that. So a reflector sees no error that makes it back off: it is current again soon after the API server is there, however long that was away.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // closed when the API server may answer again; nil = the gate is open
	reason string        // why it is closed
}

// pass asks until the API server answers, and returns its answer. away gets the reason while it does not.
func (g *gate) pass(ctx context.Context, away func(reason string), ask func() error) error {
	for {
		if err := g.wait(ctx, away); err != nil {
			return err
		}
		err := ask()
		reason := unanswered(err)
		if reason == "" || ctx.Err() != nil {
			return err
		}
		away(reason)
		if open := g.close(reason); open != nil {
			return g.repeat(ctx, open, ask)
		}
	}
}

// wait waits until the gate is open.
func (g *gate) wait(ctx context.Context, away func(reason string)) error {
	g.mu.Lock()
	closed, reason := g.closed, g.reason
	g.mu.Unlock()
	if closed == nil {
		return nil
	}
	away(reason)
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close closes the gate, and returns what opens it again; nil = it is closed already.
func (g *gate) close(reason string) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		return nil
	}
	closed := make(chan struct{})
	g.closed, g.reason = closed, reason
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = nil
		close(closed)
	}
}

// repeat asks again until there is an answer, and opens the gate. When ctx ends it opens the gate too: another request finds out.
func (*gate) repeat(ctx context.Context, open func(), ask func() error) error {
	defer open()
	for {
		pause := time.NewTimer(leastPause + rand.N(mostPause-leastPause)) //nolint:gosec // Not a secret.
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
		if err := ask(); unanswered(err) == "" || ctx.Err() != nil {
			return err
		}
	}
}

// unanswered says why a request had no answer from an API server that works, without the URL of the request; "" = it had one.
func unanswered(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsInternalError(err):
	case errors.As(err, &status):
		return "" // expired, forbidden, unauthorized
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return fmt.Sprintf("%s: %v", silent, err)
}
