package informers

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pauses between two requests of an agent to an API server that does not answer: random, so that
// the agents of a cluster do not ask at the same moment.
const (
	leastPause = time.Second
	mostPause  = 3 * time.Second
)

// gate lets requests through while the API server answers. While it does not answer, or refuses the
// credentials, the gate repeats one request until it gets an answer, and the other requests wait.
// So no reflector sees an error and backs off: each is current again soon after the API server is
// back, even after a long outage.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // closed when the gate opens, and when why changes; nil = the gate is open
	why    trouble       // reason for which it is closed
}

// pass asks until the API server answers, and returns its answer. While the API server does not
// answer, away gets the trouble, and gets it again when it changes.
func (g *gate) pass(ctx context.Context, away func(trouble), ask func() error) error {
	for {
		if err := g.wait(ctx, away); err != nil {
			return err
		}
		err := ask()
		if !unanswered(err) || ctx.Err() != nil {
			return err
		}
		why := diagnose(err)
		away(why)
		if g.close(why) {
			return g.repeat(ctx, away, ask)
		}
	}
}

// wait waits until the gate is open.
func (g *gate) wait(ctx context.Context, away func(trouble)) error {
	for {
		g.mu.Lock()
		closed, why := g.closed, g.why
		g.mu.Unlock()
		if closed == nil {
			return nil
		}
		away(why)
		select {
		case <-closed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close closes the gate, unless it is closed already.
func (g *gate) close(why trouble) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		return false
	}
	g.closed, g.why = make(chan struct{}), why
	return true
}

// because changes the trouble for which the gate is closed.
func (g *gate) because(why trouble) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != why {
		close(g.closed)
		g.closed, g.why = make(chan struct{}), why
	}
}

// open opens the gate.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
}

// repeat asks again until there is an answer, and opens the gate. It opens the gate too when ctx
// ends, so that another request can try.
func (g *gate) repeat(ctx context.Context, away func(trouble), ask func() error) error {
	defer g.open()
	for {
		pause := time.NewTimer(leastPause + rand.N(mostPause-leastPause)) //nolint:gosec // Not a secret.
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
		err := ask()
		if !unanswered(err) || ctx.Err() != nil {
			return err
		}
		why := diagnose(err)
		away(why)
		g.because(why)
	}
}

// unanswered reports whether a request failed for a reason that concerns all resources.
func unanswered(err error) bool { return err != nil && diagnose(err).general() }
