package agent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopTimeout bounds each step of the shutdown.
const stopTimeout = 5 * time.Second

// closer stops one component.
type closer struct {
	name string
	stop func(context.Context) error
}

// onClose registers a component with Close, which stops it before the components registered
// earlier.
func (a *Agent) onClose(name string, stop func(context.Context) error) {
	a.closers = append(a.closers, closer{name, stop})
}

// Close stops all components in reverse order. It works in every state and always returns, because
// every step has a deadline; a second call does nothing.
func (a *Agent) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		if err := a.closers[i].stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", a.closers[i].name, err))
		}
		cancel()
	}
	a.closers = nil
	return errors.Join(errs...)
}
