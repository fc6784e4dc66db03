package events

import "time"

// identity is what makes two events the same one.
type identity struct {
	object                     Object
	kind, reason, action, note string
	shared                     bool
}

func identityOf(e *Event) identity {
	return identity{object: e.Object, kind: e.Type, reason: e.Reason, action: e.Action, note: e.Note, shared: e.Shared}
}

// series is one event with its repetitions.
type series struct {
	id          identity
	first, last time.Time // observed
	standing    bool      // never observed but as a state that was found
	found       bool      // the first observation was a state that was found
	count       int       // observations of this run
	base        int       // what the API server counts besides, from earlier runs; unknownBase
	written     bool      // the API server has it, as far as we know
	waiting     bool      // there is something to write
	due         time.Time // when it may be written
	order       uint64    // of those that are due, the smallest goes first
	wrote       time.Time // last
	tries       int       // answers of the server that were errors, in a row
}

// book knows which events there are and what is to be written when. It has no clock and does no I/O; the caller guards it.
type book struct {
	cfg     Config
	series  map[identity]*series
	queued  int // of series, those that wait
	objects map[Object]*bucket
	global  *bucket
	pause   time.Time // nothing is written before: the API server does not answer
	swept   time.Time
	orders  uint64
	stats   Stats
}

func newBook(cfg Config, now time.Time) *book {
	return &book{cfg: cfg, series: map[identity]*series{}, objects: map[Object]*bucket{}, global: cfg.global().full(now), swept: now}
}

// record takes an observation.
func (b *book) record(e *Event, now time.Time) {
	b.stats.Recorded++
	id := identityOf(e)
	s := b.series[id]
	if s == nil {
		b.begin(id, e.Standing, now)
		return
	}
	b.stats.Repeated++
	if e.Standing {
		return // it has been told
	}
	s.last, s.standing = now, false
	if s.id.shared {
		b.again(s, s.wrote.Add(b.cfg.Window)) // the API server has forgotten it by then
		return
	}
	s.count++
	b.again(s, s.wrote.Add(b.cfg.SeriesInterval))
}

// begin adds a new event, if there is room for it.
func (b *book) begin(id identity, standing bool, now time.Time) {
	limit := b.objects[id.object]
	if limit == nil {
		limit = b.cfg.object().full(now)
		b.objects[id.object] = limit
	}
	if !limit.take(b.cfg.object(), now) {
		b.stats.Limited++
		return
	}
	if len(b.series) >= b.cfg.MaxSeries && !b.evict() {
		b.stats.Overflowed++
		return
	}
	s := &series{id: id, first: now, last: now, standing: standing, found: standing, count: 1}
	b.series[id] = s
	b.again(s, now)
}

// evict forgets the event that has been quiet for the longest time; it fails if all of them wait to be written. If it comes again, the
// API server still knows it.
func (b *book) evict() bool {
	if b.queued == len(b.series) {
		return false // the usual case in a storm, which must not cost much
	}
	var oldest *series
	for _, s := range b.series {
		if !s.waiting && (oldest == nil || s.last.Before(oldest.last)) {
			oldest = s
		}
	}
	b.forget(oldest)
	return true
}

// forget drops an event.
func (b *book) forget(s *series) {
	b.dequeue(s)
	delete(b.series, s.id)
}

// dequeue takes an event out of the queue.
func (b *book) dequeue(s *series) {
	if s.waiting {
		s.waiting = false
		b.queued--
	}
}

// again puts an event into the queue, unless it waits already.
func (b *book) again(s *series, due time.Time) {
	if s.waiting {
		return
	}
	b.orders++
	b.queued++
	s.waiting, s.due, s.order = true, due, b.orders
}

// next returns what is to be written now, with a token for it; or nil, and how long there is nothing to do.
func (b *book) next(now time.Time) (*series, time.Duration) {
	b.sweep(now)
	var first *series
	for _, s := range b.series {
		if s.waiting && (first == nil || s.before(first, now)) {
			first = s
		}
	}
	switch {
	case first == nil:
		return nil, b.cfg.Window
	case b.pause.After(now):
		return nil, b.pause.Sub(now)
	case first.due.After(now):
		return nil, first.due.Sub(now)
	case !b.global.take(b.cfg.global(), now):
		return nil, b.global.wait(b.cfg.global(), now)
	}
	return first, 0
}

// before orders the queue: what is due in the order in which it came, then the rest by time.
func (s *series) before(other *series, now time.Time) bool {
	due, otherDue := !s.due.After(now), !other.due.After(now)
	switch {
	case due != otherDue:
		return due
	case !due && !s.due.Equal(other.due):
		return s.due.Before(other.due)
	}
	return s.order < other.order
}

// sweep forgets what has been quiet for the window, and what could not be written within it. It looks now and then only.
func (b *book) sweep(now time.Time) {
	if now.Sub(b.swept) < b.cfg.Window/60 {
		return
	}
	b.swept = now
	for _, s := range b.series {
		if now.Sub(s.last) >= b.cfg.Window {
			if s.waiting {
				b.stats.Expired++
			}
			b.forget(s)
		}
	}
	for object, limit := range b.objects {
		if limit.fill(b.cfg.object(), now); limit.tokens >= b.cfg.object().burst {
			delete(b.objects, object)
		}
	}
}

// finish takes the result of a job; delay is how long nothing should be written if the API server took nothing.
func (b *book) finish(j *job, r *result, delay time.Duration, now time.Time) {
	s := b.series[j.id] // an event that waits is not forgotten while it is being written
	b.dequeue(s)
	if r.found || r.verdict == accepted {
		s.written, s.base = true, r.base
	}
	b.stats.Failing = ""
	switch r.verdict {
	case accepted:
		if r.adopted {
			b.stats.Adopted++
		} else {
			b.stats.Written++
		}
		s.wrote, s.tries = now, 0
		if s.count > j.count && !s.id.shared { // observed meanwhile
			b.again(s, now.Add(b.cfg.SeriesInterval))
		}
	case later, silence:
		b.stats.Failing = r.err.Error()
		b.pause = now.Add(max(delay, r.pause))
		if r.verdict == later {
			s.tries++
		}
		if s.tries >= b.cfg.MaxTries {
			b.stats.Abandoned++
			b.forget(s)
			return
		}
		b.again(s, now) // behind the others, which may fare better
	default:
		b.stats.Refused++
		b.stats.LastRefusal = r.err.Error()
		s.wrote, s.tries = now, 0
	}
}
