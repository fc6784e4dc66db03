package actors

import (
	"sync"
	"time"
)

// Lag knows since when changes of services wait for VPP. Like Readiness it is published outside messages, so that health checks have an
// answer even when actors hang: introspection writes it, anybody reads it. It outlives introspection. The zero value is empty.
type Lag struct {
	mu    sync.Mutex
	since map[string]time.Time // of the services that wait
	queue []waiter             // in the order of time; entries that are not in since any more are skipped
}

// waiter is one service that began to wait.
type waiter struct {
	key string
	at  time.Time
}

// Oldest returns since when the change that has waited the longest does; zero = nothing waits. Services for which skip is true are passed
// over; nil passes over none. skip must not call Lag.
func (l *Lag) Oldest(skip func(key string) bool) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.queue {
		if l.current(w) && (skip == nil || !skip(w.key)) {
			return w.at
		}
	}
	return time.Time{}
}

// current reports whether an entry of the queue still stands for a service that waits.
func (l *Lag) current(w waiter) bool {
	at, waits := l.since[w.key]
	return waits && at.Equal(w.at)
}

// set notes whether a service waits. One that waits already does so since it began.
func (l *Lag) set(key string, waits bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waited := l.since[key]
	switch {
	case waits && !waited:
		if l.since == nil {
			l.since = map[string]time.Time{}
		}
		l.since[key] = now
		l.queue = append(l.queue, waiter{key, now})
	case !waits && waited:
		delete(l.since, key)
		l.compact()
	}
}

// keep drops the services that do not exist.
func (l *Lag) keep(exist map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.since {
		if !exist[key] {
			delete(l.since, key)
		}
	}
	l.compact()
}

// compact removes stale entries of the queue when most of them are; the cost per change stays constant.
func (l *Lag) compact() {
	if len(l.queue) < 2*len(l.since)+8 {
		return
	}
	kept := l.queue[:0]
	for _, w := range l.queue {
		if l.current(w) {
			kept = append(kept, w)
		}
	}
	clear(l.queue[len(kept):])
	l.queue = kept
}
