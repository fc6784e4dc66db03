package events

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// identity holds the fields in which two observations of the same event agree.
type identity struct {
	object                     Object
	kind, reason, action, note string
	shared                     bool
}

// identityOf leaves out Standing: a state found at the start and its next occurrence are the same
// event.
func identityOf(e *Event) identity {
	return identity{object: e.Object, kind: e.Type, reason: e.Reason, action: e.Action, note: e.Note, shared: e.Shared}
}

// series is one event with its repetitions.
type series struct {
	id          identity
	first, last time.Time // observed
	known       int       // count at the API server; 0 = it does not have the event yet
	pending     int       // observations that are not in known
	found       int       // 1 = a Standing state, for an event that the API server lacks
	waiting     bool      // in the queue
	due         time.Time // when it may be written
	wrote       time.Time // last write
}

// unknown says that the API server has the event, with a count that has not been read.
const unknown = -1

// aggregator joins equal events into series and says which series is to be written next. It does no
// I/O; the Writer guards it with its lock.
type aggregator struct {
	cfg     Config
	series  map[identity]*series
	queue   []*series // series to be written, in order
	objects map[Object]flowcontrol.PassiveRateLimiter
	forgot  time.Time // last time that forget looked
	stats   Stats
	refusal string // last refusal by the API server
}

// newAggregator returns an aggregator without events; the configuration has its defaults.
func newAggregator(cfg Config) *aggregator {
	return &aggregator{cfg: cfg, series: map[identity]*series{}, objects: map[Object]flowcontrol.PassiveRateLimiter{}}
}

// record takes an observation. A repetition of a Standing or Shared event does not keep its series
// alive. After Window the API server has removed the event, and the next observation writes it
// again.
func (a *aggregator) record(e *Event, now time.Time) {
	a.stats.Recorded++
	s := a.series[identityOf(e)]
	if s == nil {
		a.begin(e, now)
		return
	}
	a.stats.Repeated++
	if !e.Standing && !e.Shared {
		s.pending++
		s.last = now
		a.enqueue(s, s.wrote.Add(a.cfg.SeriesInterval))
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
	case len(a.series) >= a.cfg.MaxSeries && !a.evict():
		a.stats.Overflowed++
		return
	}
	s := &series{id: identityOf(e), first: now, last: now}
	if e.Standing || e.Shared {
		s.found = 1
	} else {
		s.pending = 1
	}
	a.series[s.id] = s
	a.enqueue(s, now)
}

// evict forgets the series that has been quiet for the longest time. It fails if all series wait to
// be written. If the forgotten event occurs again, the API server still has it.
func (a *aggregator) evict() bool {
	var oldest *series
	for _, s := range a.series {
		if len(a.queue) == len(a.series) {
			break // the usual case in a storm, which must not cost much
		}
		if !s.waiting && (oldest == nil || s.last.Before(oldest.last)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(a.series, oldest.id)
	return true
}

// enqueue adds a series to the end of the queue. A series that is in the queue keeps its place and
// its time.
func (a *aggregator) enqueue(s *series, due time.Time) {
	if !s.waiting {
		s.waiting, s.due = true, due
		a.queue = append(a.queue, s)
	}
}

// dequeue takes a series out of the queue.
func (a *aggregator) dequeue(s *series) {
	s.waiting = false
	a.queue = slices.DeleteFunc(a.queue, func(other *series) bool { return other == s })
}

// next returns a copy of the series to be written now, or the time until one is due.
func (a *aggregator) next(now time.Time) (s *series, wait time.Duration) {
	a.forget(now)
	wait = a.cfg.Window
	// The queue holds at most MaxSeries, and one is taken per request: a scan costs nothing beside
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

// forget drops series that were not observed within the window, written or not, and the limits of
// objects without series. It does not look at every call, because it visits all series.
func (a *aggregator) forget(now time.Time) {
	if now.Sub(a.forgot) < a.cfg.Window/60 {
		return
	}
	a.forgot = now
	remembered := map[Object]bool{}
	for id, s := range a.series {
		if now.Sub(s.last) < a.cfg.Window {
			remembered[id.object] = true
			continue
		}
		if s.waiting {
			a.stats.Expired++
			a.dequeue(s)
		}
		delete(a.series, id)
	}
	maps.DeleteFunc(a.objects, func(o Object, _ flowcontrol.PassiveRateLimiter) bool { return !remembered[o] })
}

// finish records the result of writing a series.
func (a *aggregator) finish(id identity, r *result, now time.Time) {
	s := a.series[id] // present: a series in the queue is not forgotten while it is written
	a.dequeue(s)
	if r.known != 0 {
		s.known = r.known
	}
	if r.known > 0 {
		s.found = 0
	}
	s.pending -= r.written
	switch r.verdict {
	case accepted:
		if r.adopted {
			a.stats.Adopted++
		} else {
			a.stats.Written++
		}
		s.wrote = now
		if s.pending > 0 { // observed during the request
			a.enqueue(s, now.Add(a.cfg.SeriesInterval))
		}
	case later:
		a.enqueue(s, now) // behind the other series: the API server may accept them
	default:
		a.stats.Refused++
		a.refusal, s.wrote = r.err.Error(), now
	}
}
