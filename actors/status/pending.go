package status

import (
	"maps"
	"sync"
	"time"
)

// PendingSince knows since when changes of services wait for an answer of the renderers. It
// outlives introspection, which writes it; any goroutine may read it. The zero value is empty.
type PendingSince struct {
	mu    sync.Mutex
	since map[string]time.Time // of the services that wait
}

// Oldest returns since when the oldest change waits; zero = none waits. It ignores services for
// which skip is true; nil ignores none. skip must not call PendingSince.
func (p *PendingSince) Oldest(skip func(key string) bool) (oldest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, at := range p.since {
		if (oldest.IsZero() || at.Before(oldest)) && (skip == nil || !skip(key)) {
			oldest = at
		}
	}
	return oldest
}

// set notes since when a service waits; zero = it does not wait.
func (p *PendingSince) set(key string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since.IsZero() {
		delete(p.since, key)
		return
	}
	if p.since == nil {
		p.since = map[string]time.Time{}
	}
	p.since[key] = since
}

// keep drops the services that do not exist.
func (p *PendingSince) keep(exist map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.since, func(key string, _ time.Time) bool { return !exist[key] })
}
