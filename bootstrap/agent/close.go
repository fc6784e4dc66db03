package agent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopTimeout bounds each step of the shutdown.
const stopTimeout = 5 * time.Second

// closer is one thing to be stopped.
type closer struct {
	name string
	stop func(context.Context) error
}

// onClose has something stopped by Close, before everything that was registered earlier.
func (a *Agent) onClose(name string, stop func(context.Context) error) {
	a.closers = append(a.closers, closer{name, stop})
}

// Close stops everything in reverse order. It works in every state and always ends; a second call does nothing.
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
