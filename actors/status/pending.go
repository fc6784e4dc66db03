package status

import (
	"sync"
	"time"
)

// PendingSince knows since when changes of services wait for VPP. It outlives introspection, which writes it; any goroutine may read it. The zero
// value is empty.
type PendingSince struct {
	mu    sync.Mutex
	since map[string]time.Time // of the services that wait
	queue []pending            // in the order of time; entries that are not in since any more are skipped
}

// pending is one service that began to wait.
type pending struct {
	key string
	at  time.Time
}

// Oldest returns since when the change that has waited the longest does; zero = nothing waits. Services for which skip is true are passed
// over; nil passes over none. skip must not call PendingSince.
func (p *PendingSince) Oldest(skip func(key string) bool) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.queue {
		if p.current(w) && (skip == nil || !skip(w.key)) {
			return w.at
		}
	}
	return time.Time{}
}

// current reports whether an entry of the queue still stands for a service that waits.
func (p *PendingSince) current(w pending) bool {
	at, waits := p.since[w.key]
	return waits && at.Equal(w.at)
}

// set notes whether a service waits. One that waits already does so since it began.
func (p *PendingSince) set(key string, waits bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waited := p.since[key]
	switch {
	case waits && !waited:
		if p.since == nil {
			p.since = map[string]time.Time{}
		}
		p.since[key] = now
		p.queue = append(p.queue, pending{key, now})
	case !waits && waited:
		delete(p.since, key)
		p.compact()
	}
}

// keep drops the services that do not exist.
func (p *PendingSince) keep(exist map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.since {
		if !exist[key] {
			delete(p.since, key)
		}
	}
	p.compact()
}

// compact removes stale entries of the queue when most of them are; the cost per change stays constant.
func (p *PendingSince) compact() {
	if len(p.queue) < 2*len(p.since)+8 {
		return
	}
	kept := p.queue[:0]
	for _, w := range p.queue {
		if p.current(w) {
			kept = append(kept, w)
		}
	}
	clear(p.queue[len(kept):])
	p.queue = kept
}
