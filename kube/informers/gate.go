package informers

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pauses between two requests of an agent to an API server that does not answer: random, so that the agents of a cluster do not ask at the same moment.
const (
	leastPause = time.Second
	mostPause  = 3 * time.Second
)

// gate lets requests through while the API server answers. While it does not, or refuses the credentials, one of them is repeated until it gets an answer, and the others wait for
// that. So a reflector sees no error that makes it back off: it is current again soon after the API server is there, however long that was away.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // closed when the API server may answer again; nil = the gate is open
	why    trouble       // it is closed for
}

// pass asks until the API server answers, and returns its answer. away gets the trouble while it does not.
func (g *gate) pass(ctx context.Context, away func(trouble), ask func() error) error {
	for {
		if err := g.wait(ctx, away); err != nil {
			return err
		}
		err := ask()
		why := diagnose(err)
		if !unanswered(err) || ctx.Err() != nil {
			return err
		}
		away(why)
		if open := g.close(why); open != nil {
			return g.repeat(ctx, open, ask)
		}
	}
}

// wait waits until the gate is open.
func (g *gate) wait(ctx context.Context, away func(trouble)) error {
	g.mu.Lock()
	closed, why := g.closed, g.why
	g.mu.Unlock()
	if closed == nil {
		return nil
	}
	away(why)
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close closes the gate, and returns what opens it again; nil = it is closed already.
func (g *gate) close(why trouble) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		return nil
	}
	closed := make(chan struct{})
	g.closed, g.why = closed, why
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
		if err := ask(); !unanswered(err) || ctx.Err() != nil {
			return err
		}
	}
}

// unanswered reports whether a request had no answer that is about its resource.
func unanswered(err error) bool { return err != nil && diagnose(err).general() }
