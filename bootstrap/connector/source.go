package connector

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// source runs one source, cleans its snapshots and passes them on.
type source struct {
	deps *deps
	of   namedSource
	last *published
}

// snapshot is posted by the goroutine of the source.
type snapshot struct{ catalog.Snapshot }

// CoalesceKey replaces the pending message.
func (*snapshot) CoalesceKey() string { return "snapshot" }

// ended says that the source has returned.
type ended struct{ err error }

func (s *source) Start(c *runtime.Context) {
	defer c.Ready()
	from, err := s.of.make()
	if err != nil {
		c.Fail(err)
		return
	}
	post := c.Post()
	c.Go("source", func(ctx context.Context) {
		err := from.Run(ctx, func(s catalog.Snapshot) { post(&snapshot{s}) })
		if err == nil {
			err = errors.New("the source has ended")
		}
		if ctx.Err() == nil { // otherwise the actor ends
			post(&ended{err})
		}
	})
}

func (s *source) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *snapshot:
		s.last = &published{source: s.of.name, snapshot: catalog.Clean(m.Snapshot, s.deps.limits), at: c.Now()}
		c.Send(c.PID(aggregatorPath), s.last)
	case *ended:
		err := fmt.Errorf("source %s: %w", s.of.name, m.err)
		c.Send(c.PID(aggregatorPath), &failed{s.of.name, m.err.Error()})
		c.Fail(err)
	case *again:
		if s.last != nil {
			c.Send(c.PID(aggregatorPath), s.last)
		}
	}
}

func (*source) Stop(*runtime.Context) {}

func (s *source) Inspect() any {
	if s.last == nil {
		return map[string]any{"published": nil}
	}
	return map[string]any{
		"published": s.last.at, "complete": s.last.snapshot.Complete, "services": len(s.last.snapshot.Services), "problems": s.last.snapshot.Problems,
	}
}
