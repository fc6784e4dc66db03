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

// gate lets requests through while the API server answers. While it does not, or refuses the
// credentials, one of them is repeated until it gets an answer, and the others wait for that. So a
// reflector sees no error that makes it back off: it is current again soon after the API server is
// there, however long that was away.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // closed when the gate opens, and when why changes; nil = the gate is open
	why    trouble       // it is closed for
}

// pass asks until the API server answers, and returns its answer. away gets the trouble while it
// does not, again when that changes.
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

// repeat asks again until there is an answer, and opens the gate. When ctx ends it opens the gate
// too: another request finds out.
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

// unanswered reports whether a request had no answer that is about its resource.
func unanswered(err error) bool { return err != nil && diagnose(err).general() }
