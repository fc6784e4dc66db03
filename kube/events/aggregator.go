package events

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// identityOf is an event without Standing: a state found at the start and its next occurrence are
// the same event.
func identityOf(e *Event) Event {
	id := *e
	id.Standing = false
	return id
}

// known is an event that was observed, with its repetitions.
type known struct {
	id          Event     // without Standing
	first, last time.Time // observed: the first time since the last write, the last time
	occurrence  int       // number of the event that is written next
	changes     int       // observed and not written, without states that stand or are shared
	tried       bool      // a request for this occurrence may have been carried out
	told        int       // number of changes in the first of these requests
	waiting     bool      // in the queue
	due         time.Time // when it may be written
	wrote       time.Time // last write
}

// aggregator joins equal events and says which event is to be written next. It does no I/O; the
// Writer guards it with its lock.
type aggregator struct {
	cfg     Config
	known   map[Event]*known
	queue   []*known // to be written, in order
	objects map[Object]flowcontrol.PassiveRateLimiter
	forgot  time.Time // last time that forget looked
	stats   Stats
	refusal string // last refusal by the API server
}

// newAggregator returns an aggregator without events; the configuration has its defaults.
func newAggregator(cfg Config) *aggregator {
	return &aggregator{cfg: cfg, known: map[Event]*known{}, objects: map[Object]flowcontrol.PassiveRateLimiter{}}
}

// record takes an observation. A repetition of a Standing or Shared event does not keep the event
// in memory. After Window the API server has removed it, and the next observation writes it again.
func (a *aggregator) record(e *Event, now time.Time) {
	a.stats.Recorded++
	s := a.known[identityOf(e)]
	if s == nil {
		a.begin(e, now)
		return
	}
	a.stats.Repeated++
	if !e.Standing && !e.Shared {
		s.last = now
		if s.changes == 0 {
			s.first = now
		}
		s.changes++
		a.enqueue(s, s.wrote.Add(a.cfg.ObjectInterval))
	}
}

// begin adds a new event, if its object and the memory have room for it.
func (a *aggregator) begin(e *Event, now time.Time) {
	limit := a.objects[e.Object]
	if limit == nil {
		// As in client-go's spam filter, the limit belongs to the object: one Service that flaps
		// must not use up the events of the others.
		limit = flowcontrol.NewTokenBucketPassiveRateLimiter(float32(1/a.cfg.ObjectInterval.Seconds()), a.cfg.ObjectBurst)
		a.objects[e.Object] = limit
	}
	switch {
	case !limit.TryAccept():
		a.stats.Limited++
		return
	case len(a.known) >= a.cfg.MostEvents && !a.evict():
		a.stats.Overflowed++
		return
	}
	s := &known{id: identityOf(e), first: now, last: now}
	if !e.Standing && !e.Shared {
		s.changes = 1
	}
	a.known[s.id] = s
	a.enqueue(s, now)
}

// evict forgets the event that has been quiet for the longest time. It fails if all events wait to
// be written.
func (a *aggregator) evict() bool {
	var oldest *known
	for _, s := range a.known {
		if len(a.queue) == len(a.known) {
			break // the usual case in a storm, which must not cost much
		}
		if !s.waiting && (oldest == nil || s.last.Before(oldest.last)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(a.known, oldest.id)
	return true
}

// enqueue adds an event to the end of the queue. An event in the queue keeps its place and its
// time.
func (a *aggregator) enqueue(s *known, due time.Time) {
	if !s.waiting {
		s.waiting, s.due = true, due
		a.queue = append(a.queue, s)
	}
}

// dequeue takes an event out of the queue.
func (a *aggregator) dequeue(s *known) {
	s.waiting = false
	a.queue = slices.DeleteFunc(a.queue, func(other *known) bool { return other == s })
}

// next returns a copy of the event to be written now, or the time until one is due.
func (a *aggregator) next(now time.Time) (s *known, wait time.Duration) {
	a.forget(now)
	wait = a.cfg.Window
	// The queue holds at most MostEvents, and one is taken per request: a scan costs nothing beside
	// the request.
	for _, s := range a.queue {
		if !s.due.After(now) {
			job := *s
			return &job, 0
		}
		wait = min(wait, s.due.Sub(now))
	}
	return nil, wait
}

// forget drops events that were not observed within the window, written or not, and the limits of
// objects without events. It does not look at every call, because it visits all events.
func (a *aggregator) forget(now time.Time) {
	if now.Sub(a.forgot) < a.cfg.Window/60 {
		return
	}
	a.forgot = now
	remembered := map[Object]bool{}
	for id, s := range a.known {
		if now.Sub(s.last) < a.cfg.Window {
			remembered[id.Object] = true
			continue
		}
		if s.waiting {
			a.stats.Expired++
			a.dequeue(s)
		}
		delete(a.known, id)
	}
	maps.DeleteFunc(a.objects, func(o Object, _ flowcontrol.PassiveRateLimiter) bool { return !remembered[o] })
}

// finish records the result of writing an event; job is the copy that was written. A state needs
// one event only. A change needs one of its own: where the API server has one, it is that of a
// request without an answer, or of an earlier run.
func (a *aggregator) finish(job *known, r *result, now time.Time) {
	s := a.known[job.id] // present: an event in the queue is not forgotten while it is written
	a.dequeue(s)
	told := job.changes
	switch {
	case r.verdict == later:
		if !s.tried {
			s.tried, s.told = true, job.changes
		}
		a.enqueue(s, now) // behind the other events: the API server may accept them
		return
	case r.verdict == refused:
		a.stats.Refused++
		a.refusal = r.err.Error()
	case r.verdict == accepted:
		a.stats.Written++
		s.occurrence++
	case job.tried:
		a.stats.Written++
		s.occurrence++
		told = job.told
	case s.changes > 0: // an earlier run has written this occurrence
		s.occurrence++
		a.enqueue(s, now)
		return
	default:
		a.stats.Adopted++
		s.occurrence++
	}
	s.wrote, s.tried = now, false
	s.changes -= told
	if s.changes > 0 { // observed during the request, or after it
		s.first = s.last
		a.enqueue(s, now.Add(a.cfg.ObjectInterval))
	}
}
