package connector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/connector/store"
	"github.com/troupe-vpp/troupe/kube/events"
)

// writers is how many services are written at the same time. The rate limit of the store's client
// bounds the requests.
const writers = 8

// Delays after a write that failed. There is no last attempt.
var (
	failedBackoff = runtime.Backoff{Min: time.Second, Max: 5 * time.Minute, Jitter: 0.2}
	// the same object will be refused again
	invalidBackoff = runtime.Backoff{Min: time.Minute, Max: 5 * time.Minute, Jitter: 0.2}
)

// sink owns the store and makes the writes.
type sink struct {
	deps    *deps
	store   store.Store
	term    context.Context // of leadership; nil = another connector leads
	jobs    map[string]*job // by name of the Service
	ready   []string        // jobs to begin, in their order
	running int
	written uint64
	refused map[store.WriteReason]uint64
	trouble string // in the log
}

// job is the work of one service.
type job struct {
	work    render.Work
	running bool
	waiting bool // for its retry
	tries   int
	err     error
}

// The messages that the goroutines and timers of the sink post.
type (
	closed struct{ err error }            // the store has ended
	led    struct{ term context.Context } // nil = the term has ended
	retry  struct{ service string }
	wrote  struct {
		service string
		made    int
		err     error
	}
)

// newSink returns the actor.
func newSink(d *deps) runtime.Behaviour {
	return &sink{deps: d, jobs: map[string]*job{}, refused: map[store.WriteReason]uint64{}}
}

func (s *sink) Start(c *runtime.Context) {
	post := c.Post()
	s.store = s.deps.store()
	c.Go("store", func(ctx context.Context) {
		err := s.store.Run(ctx, func() { post(&changed{}) })
		if err == nil {
			err = errors.New("the store has ended")
		}
		if ctx.Err() == nil { // otherwise the actor ends
			post(&closed{err})
		}
	})
	c.Go("leader", func(ctx context.Context) {
		s.deps.lead(ctx, func(term context.Context) {
			post(&led{term})
			<-term.Done()
			post(&led{})
		})
	})
	c.Send(c.PID(aggregatorPath), &opened{s.store})
	s.publish(c)
	c.Ready()
}

// publish publishes the state every second, and logs when the store does not see its objects.
func (s *sink) publish(c *runtime.Context) {
	status := s.status()
	s.deps.board.sink.Store(status)
	switch {
	case status.Trouble == s.trouble:
	case status.Trouble != "":
		c.Logger().Warn("objects not watched", "err", status.Trouble)
	default:
		c.Logger().Info("objects watched again")
	}
	s.trouble = status.Trouble
	c.After(time.Second, &publish{})
}

func (s *sink) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *again:
		c.Send(c.PID(aggregatorPath), &opened{s.store})
	case *changed:
		c.Send(c.PID(aggregatorPath), m)
	case *closed:
		c.Fail(fmt.Errorf("store: %w", m.err))
	case *led:
		s.term = m.term
		if s.term != nil { // the next pass sees what the last leader wrote
			c.Send(c.PID(aggregatorPath), &changed{})
		}
	case *planned:
		s.plan(c, m)
	case *retry:
		if j := s.jobs[m.service]; j != nil && j.waiting {
			j.waiting = false
			s.ready = append(s.ready, m.service)
			s.begin(c)
		}
	case *wrote:
		s.done(c, m)
	case *publish:
		s.publish(c)
	}
}

func (*sink) Stop(*runtime.Context) {}

// plan replaces the work. A service keeps the delay of its retry.
func (s *sink) plan(c *runtime.Context, m *planned) {
	if s.term == nil {
		return // the term begins with a pass
	}
	wanted := map[string]bool{}
	s.ready = nil
	for _, work := range m.changes.Work {
		wanted[work.Service] = true
		j := s.jobs[work.Service]
		if j == nil {
			j = &job{}
			s.jobs[work.Service] = j
		}
		if j.running {
			continue // another pass follows its writes
		}
		j.work = work
		if !j.waiting {
			s.ready = append(s.ready, work.Service)
		}
	}
	maps.DeleteFunc(s.jobs, func(name string, j *job) bool { return !wanted[name] && !j.running })
	for _, p := range m.changes.Problems {
		s.record(p)
	}
	s.begin(c)
}

// begin starts as many writes as may run.
func (s *sink) begin(c *runtime.Context) {
	for s.running < writers && len(s.ready) > 0 && s.term != nil {
		j := s.jobs[s.ready[0]]
		s.ready = s.ready[1:]
		if j == nil || j.running {
			continue
		}
		j.running = true
		s.running++
		to, term, work, post := s.store, s.term, j.work, c.Post()
		c.Go("write", func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(term, cancel)()
			made, err := store.Do(ctx, to, work)
			post(&wrote{work.Service, made, err})
		})
	}
}

// done takes the result of the writes of one service.
func (s *sink) done(c *runtime.Context, m *wrote) {
	s.running--
	s.written += uint64(m.made)
	j := s.jobs[m.service]
	j.running, j.err = false, m.err
	var refused *store.WriteError
	switch {
	case m.err == nil:
		delete(s.jobs, m.service)
	case s.term == nil || s.term.Err() != nil: // ended with the term
	default:
		backoff := failedBackoff
		if errors.As(m.err, &refused) {
			s.refused[refused.Reason]++
			if refused.Reason == store.WriteInvalid {
				backoff = invalidBackoff
				s.event(m.service, "", events.ReasonFailedToRender, m.err.Error())
			}
		}
		j.tries++
		if j.tries == 1 {
			c.Logger().Warn("service not written, retrying", "service", m.service, "err", m.err)
		}
		j.waiting = true
		c.After(backoff.Delay(j.tries, c.Rand()), &retry{m.service})
		c.Send(c.PID(aggregatorPath), &changed{}) // the compared objects may have changed
	}
	s.begin(c)
}

// record records an Event about an object of another owner that occupies a needed name.
func (s *sink) record(p catalog.Problem) {
	if p.Reason == catalog.ReasonForeign && p.Object != "" {
		s.event(p.Object, p.UID, events.ReasonNameConflict, p.String())
	}
}

func (s *sink) event(service, uid, reason, note string) {
	if s.deps.events != nil {
		s.deps.events.Record(events.Event{
			Object: events.ServiceObject(s.deps.options.Namespace+"/"+service, uid), Type: events.Warning, Reason: reason, Action: "Sync",
			Note: note, Standing: true, Shared: true,
		})
	}
}

// sinkStatus is the state of the writes, for operators.
type sinkStatus struct {
	// Leads says that this connector may write.
	Leads bool
	// Trouble is why the store does not see its objects; "" = it sees them.
	Trouble string
	// Written counts the writes of this incarnation, Refused the failed ones by reason.
	Written uint64
	Refused map[store.WriteReason]uint64
	// Pending is how many services wait for their writes or for a retry.
	Pending int
	// Failing are the services whose last write failed, ordered, with the error.
	Failing []string
}

// status describes the writes.
func (s *sink) status() *sinkStatus {
	out := &sinkStatus{Leads: s.term != nil, Trouble: s.store.Trouble(), Written: s.written, Refused: maps.Clone(s.refused), Pending: len(s.jobs)}
	for name, j := range s.jobs {
		if j.err != nil {
			out.Failing = append(out.Failing, name+": "+strings.TrimSpace(j.err.Error()))
		}
	}
	slices.Sort(out.Failing)
	return out
}

func (s *sink) Inspect() any { return s.status() }
