package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
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

// startOutside starts the writer of Kubernetes Events, which go to the log without an API server,
// and the servers of health-check node ports. They are not actors, so that they keep their state
// when actors restart.
func (a *Agent) startOutside(client *apiserver.Client) {
	if client == nil {
		a.events = events.NewLog(a.log.With("part", "events"))
	} else {
		writer := events.New(client, events.Config{NodeName: a.cfg.NodeName}, a.log.With("part", "events"))
		a.own("events", writer.Run)
		a.events = writer
	}
	a.events.Record(events.Started(a.cfg.NodeName))
	a.health = healthcheck.New(healthcheck.Config{
		Healthy: a.keepsUp.Healthy, Log: a.log.With("part", "healthcheck"), OnLimit: a.refusals.tooManyConnections(listenerHealthPort),
		OnProblem: func(p healthcheck.Problem) {
			if p.Err != nil || !p.Withdrawn {
				a.events.Record(events.HealthCheck(events.ServiceObject(p.Service, p.UID), a.cfg.NodeName, p.Port, p.Err))
			}
		},
	})
	a.own("health-check servers", a.health.Run)
}

// own runs a component in a goroutine; Close ends it and waits for it.
func (a *Agent) own(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	a.onClose(name, func(deadline context.Context) error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-deadline.Done():
			return fmt.Errorf("still running: %w", deadline.Err())
		}
	})
}
